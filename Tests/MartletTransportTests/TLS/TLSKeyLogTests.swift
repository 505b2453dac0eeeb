import Glibc
import MartletTransport
import Testing

@Suite("The TLS key log")
struct TLSKeyLogTests {
    private func temporaryPath() -> String {
        "/tmp/martlet-keylog-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    }

    private func contents(_ path: String) throws -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    @Test("The secrets of each connection are appended to a file that only its owner can read")
    func logs() async throws {
        let path = temporaryPath()
        defer { unsafe unlink(path) }
        let client = try Certificates.client { $0.keyLogFile = path }
        for version in TLSVersion.allCases {
            let server = try Certificates.server { $0.maximumVersion = version }
            let outcome = await (try TLSPair()).handshake(client: client, server: server)
            _ = try outcome.client.get()
        }
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        let lines = try contents(path).split(separator: "\n")
        #expect(lines.contains { $0.hasPrefix("CLIENT_RANDOM ") })
        #expect(lines.contains { $0.hasPrefix("CLIENT_TRAFFIC_SECRET_0 ") })
    }

    @Test("A pipe is rejected because a missing reader would end the process")
    func pipe() throws {
        let path = temporaryPath()
        #expect(unsafe mkfifo(path, 0o600) == 0)
        defer { unsafe unlink(path) }
        #expect(throws: TLSError.self) {
            try Certificates.client { $0.keyLogFile = path }
        }
    }
}
