import Martlet
import MartletTesting

/// The compiled samples of the documentation on upgrades. A test compares the two texts.
enum UpgradeSamples {
    static func attach(_ session: HTTPSession, _ settings: JSONValue, _ input: [UInt8]) async throws {
        try await session.upgrade(
            "http://localhost/containers/web/attach?stream=1&stdin=1",
            to: "tcp", method: .post, body: .json(settings)
        ) { connection in
            async let sent: Void = {
                try await connection.write(input)
                try await connection.closeWriting()
            }()
            while let bytes = try await connection.read() {
                print(String(decoding: bytes, as: UTF8.self))
            }
            try await sent
        }
    }

    static func either(_ session: HTTPSession, _ url: String) async throws {
        switch try await session.upgrade(url, to: "IRC/6.9") {
        case .upgraded(let connection):
            try await connection.write(Array("NICK martlet\r\n".utf8), timeout: .seconds(5))
            connection.close()
        case .response(let exchange):
            print("the server speaks only HTTP:", exchange.status)
        }
    }

    static func origin(_ session: HTTPSession) async throws {
        try await TestOrigin.withOrigin { _ in
            .upgrade(to: "echo") { stream in
                while let bytes = try await stream.read() { try await stream.write(bytes) }
            }
        } run: { origin in
            try await session.upgrade(origin.url("/"), to: "echo") { connection in
                try await connection.write(Array("ping".utf8))
            }
        }
    }
}
