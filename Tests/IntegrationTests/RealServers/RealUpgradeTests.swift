import Martlet
import MartletTesting
import Testing

@Suite("Upgrades through nginx", .timeLimit(.minutes(20)))
struct RealUpgradeTests {
    @Test("nginx passes a switch of protocols on, plain and over TLS", arguments: ["http", "https"])
    func switching(_ scheme: String) async throws {
        try await NginxServer.withServer { nginx in
            try await TestOrigin.withOrigin { _ in
                .upgrade(to: "echo") { stream in
                    try await stream.write("hi")
                    while let bytes = try await stream.read() { try await stream.write(bytes) }
                }
            } run: { origin in
                let session = HTTPSession.trusting(nginx.certificates)
                let port = scheme == "http" ? nginx.plainPort : nginx.tlsPort
                let url = nginx.url(port, "/upgrade?port=\(origin.port)", scheme: scheme)
                try await session.upgrade(url, to: "echo") { connection in
                    let sent = TestPattern.bytes(from: 0, count: 1 << 20)
                    async let written: Void = connection.write(sent)
                    var received: [UInt8] = []
                    while received.count < sent.count + 2, let piece = try await connection.read() { received += piece }
                    try await written
                    #expect(received == Array("hi".utf8) + sent)
                }
                #expect(session.diagnostics.isIdle)
            }
        }
    }
}
