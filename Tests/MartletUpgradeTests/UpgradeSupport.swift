import Martlet
import MartletTestSupport
import MartletTesting
import Testing

extension HTTPSession {
    /// Offers a protocol, and returns the connection.
    nonisolated func upgraded(
        _ url: String, to protocolName: String = "echo", options: RequestOptions = RequestOptions()
    )
        async throws -> UpgradedConnection
    {
        guard case .upgraded(let connection) = try await upgrade(url, to: protocolName, options: options) else {
            throw NotUpgraded()
        }
        return connection
    }

    /// Whether no call runs, and no connection is open, being opened or awaited.
    nonisolated var isEmpty: Bool {
        let counts = diagnostics
        return counts.isIdle && counts.pool.idle == 0
    }
}

/// The error of a test whose server did not switch protocols.
struct NotUpgraded: Error {}

extension UpgradedConnection {
    /// Reads a number of bytes; fewer at the end of the stream.
    func read(exactly count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count, let piece = try await read(upTo: count - bytes.count) { bytes += piece }
        return bytes
    }

    /// Reads up to the end of the stream.
    func readAll() async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while let piece = try await read() { bytes += piece }
        return bytes
    }

    func write(_ text: String) async throws { try await write(Array(text.utf8)) }
}

extension OriginHandler {
    /// Switches to a protocol, and sends all bytes back until the client ends its direction.
    static func echoing(_ protocolName: String = "echo") -> OriginHandler {
        OriginHandler { _ in
            .upgrade(to: protocolName) { stream in
                while let bytes = try await stream.read() { try await stream.write(bytes) }
            }
        }
    }
}

/// Returns the bytes of a text.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
