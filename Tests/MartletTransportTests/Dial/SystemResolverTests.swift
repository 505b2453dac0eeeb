import Testing

@testable import MartletTransport

@Suite("The system's resolver")
struct SystemResolverTests {
    @Test(
        "Names below localhost are this machine, whoever else may know them",
        arguments: ["a.localhost", "A.B.LocalHost", "a.localhost."])
    func belowLocalhost(_ name: String) async throws {
        let addresses = try await SystemResolver().addresses(of: name, port: 8080)
        #expect(addresses.map(\.description) == ["[::1]:8080", "127.0.0.1:8080"])
    }

    @Test(
        "Names that only look like these are the system's",
        arguments: [
            "localhost", "localhost.", ".localhost", "a..localhost", "notlocalhost", "localhost.example",
        ])
    func others(_ name: String) {
        #expect(!SystemResolver.isBelowLocalhost(name))
    }
}
