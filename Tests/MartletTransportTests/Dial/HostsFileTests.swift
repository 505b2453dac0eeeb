import Foundation
import Testing

@testable import MartletTransport

@Suite("The hosts file")
struct HostsFileTests {
    @Test(
        "Names are found on lines that begin with an address",
        arguments: [
            ("127.0.0.1 localhost", ["localhost"]),
            (
                "127.0.1.1\tVM.example.com vm\n::1 ip6-localhost # other\n",
                ["vm.example.com", "vm", "ip6-localhost"]
            ),
            ("  10.0.0.1  a  \t b\r\n10.0.0.1 c", ["a", "b", "c"]),
            ("# 10.0.0.1 commented\n10.0.0.1#a b\n10.0.0.1 c#d", ["c"]),
            ("10.0.0.1", []), ("name 10.0.0.1", []), ("fe80::1%lo zone", []), ("", []), ("\n\n \n", []),
            ("10.0.0.1 \0 a\0b", ["\0", "a\0b"]),
            ("10.0.0.1 " + String(repeating: "n", count: 256) + " short", ["short"]),
        ])
    func names(_ text: String, _ expected: [String]) {
        #expect(HostsFile.names(in: Array(text.utf8)) == Set(expected))
    }

    @Test("Invalid UTF-8 and lines without an end are harmless")
    func hostileBytes() {
        #expect(HostsFile.names(in: [0xFF, 0x20, 0xFF, 0x0A]) == [])
        let bytes = Array("10.0.0.1 ".utf8) + [0xFF, 0xC0, 0x20] + Array("ok".utf8)
        #expect(HostsFile.names(in: bytes).contains("ok"))
        #expect(HostsFile.names(in: [UInt8](repeating: 0x31, count: 1 << 20)) == [])
    }

    @Test(
        "A changed file is read again, and a missing, large or special file has no names"
    )
    func changes() throws {
        let directory = FileManager.default.temporaryDirectory.path + "/martlet-hosts-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/hosts"
        let hosts = HostsFile(path: path)
        func write(_ text: String) throws {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        #expect(!hosts.contains("a"))
        try write("10.0.0.1 a\n")
        #expect(hosts.contains("a") && !hosts.contains("b"))
        try write("10.0.0.1 b\n")
        #expect(!hosts.contains("a") && hosts.contains("b"))
        let lines = String(repeating: "10.0.0.1 filler\n", count: HostsFile.byteLimit / 16)
        try write("10.0.0.1 c\n" + lines.dropFirst(11))
        #expect(hosts.contains("c"))
        try write("10.0.0.1 d\n" + lines)
        #expect(!hosts.contains("d"))
        try FileManager.default.removeItem(atPath: path)
        #expect(!hosts.contains("d"))
        #expect(unsafe mkfifo(path, 0o600) == 0)
        #expect(!hosts.contains("d"))
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(!hosts.contains("d"))
        // A regular file that cannot be read.
        #expect(!HostsFile(path: "/proc/self/mem").contains("d"))
    }
}
