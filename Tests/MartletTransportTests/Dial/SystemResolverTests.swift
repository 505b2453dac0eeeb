import Glibc
import Testing

@testable import MartletTransport

@Suite("The system's resolver")
struct SystemResolverTests {
    @Test(
        "Localhost, its subdomains and address literals are resolved without a lookup",
        arguments: [
            ("localhost", ["[::1]:8080", "127.0.0.1:8080"]),
            ("LOCALHOST.", ["[::1]:8080", "127.0.0.1:8080"]),
            ("a.localhost", ["[::1]:8080", "127.0.0.1:8080"]),
            ("A.B.LocalHost", ["[::1]:8080", "127.0.0.1:8080"]),
            ("a.localhost.", ["[::1]:8080", "127.0.0.1:8080"]),
            ("192.0.2.1", ["192.0.2.1:8080"]),
            ("127.1", ["127.0.0.1:8080"]),
            ("::1", ["[::1]:8080"]),
            ("2001:DB8::1", ["[2001:db8::1]:8080"]),
            ("fe80::1%lo", ["[fe80::1]:8080"]),
        ])
    func immediate(_ name: String, _ expected: [String]) async throws {
        #expect(SystemResolver.immediateAnswer(for: name) != nil)
        let addresses = try await SystemResolver().addresses(of: name, port: 8080)
        #expect(addresses.map(\.description) == expected)
    }

    @Test("The zone of an address literal is retained")
    func zone() async throws {
        let addresses = try await SystemResolver().addresses(of: "fe80::1%lo", port: 80)
        // The last field of sockaddr_in6, sin6_scope_id.
        let index = unsafe UInt8(truncatingIfNeeded: if_nametoindex("lo"))
        #expect(addresses.map { Array($0.bytes.suffix(4)) } == [[index, 0, 0, 0]])
    }

    @Test(
        "Names that only resemble localhost or a literal are resolved by the system",
        arguments: [
            ".localhost", "a..localhost", "notlocalhost", "localhost.example", "dead.example", "vm",
            "fe80::1%none", "1.2.3.4.5", "[::1]",
        ])
    func others(_ name: String) {
        #expect(SystemResolver.immediateAnswer(for: name) == nil)
    }

    @Test(
        "An invalid name fails without a lookup",
        arguments: ["", "127.0.0.1\0", "\0", String(repeating: "a", count: 256)])
    func invalid(_ name: String) async {
        await #expect(throws: ResolutionError(host: name, code: EAI_NONAME, message: "not a host name")) {
            try await SystemResolver().addresses(of: name, port: 80)
        }
    }

    @Test("An invalid port fails", arguments: [-1, 65_536, Int.max, Int.min])
    func port(_ port: Int) async {
        await #expect(throws: ResolutionError.self) {
            try await SystemResolver().addresses(of: "localhost", port: port)
        }
    }
}
