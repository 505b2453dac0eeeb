import MartletTransport

/// A connection of a test origin after the head of a response, as a stream of bytes: see ``OriginResponse/takeover``.
///
/// One task may read while another one writes. Bytes that the client sent early are read first.
public final class OriginStream: Sendable {
    private let channel: OriginChannel

    init(_ channel: OriginChannel) { self.channel = channel }

    /// Waits for bytes from the client.
    /// - Parameter maximum: The maximum number of bytes, at least 1.
    /// - Returns: At least one byte; `nil` after the client has ended its direction.
    /// - Throws: ``OriginError/disconnected(_:)``.
    public func read(upTo maximum: Int = 65_536) async throws -> [UInt8]? {
        while true {
            let bytes = channel.withUnread { span in
                let count = min(max(1, maximum), span.count)
                return (count, OriginChannel.copy(0..<count, of: span))
            }
            if !bytes.isEmpty { return bytes }
            do throws(TransportError) { guard try await channel.fill() else { return nil } } catch {
                throw OriginError.disconnected("\(error)")
            }
        }
    }

    /// Reads exactly a number of bytes.
    /// - Returns: The bytes; fewer if the client has ended its direction before.
    public func read(exactly count: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count, let piece = try await read(upTo: count - bytes.count) { bytes += piece }
        return bytes
    }

    /// Sends bytes; returns when the system has accepted all of them.
    /// - Throws: ``OriginError/disconnected(_:)``.
    public func write(_ bytes: [UInt8]) async throws { try await channel.respond(bytes) }

    /// Sends the UTF-8 bytes of a text; see ``write(_:)-([UInt8])``.
    public func write(_ text: String) async throws { try await write(Array(text.utf8)) }

    /// Ends the sending direction, over TLS after a `close_notify`.
    public func closeWriting() { channel.stream.shutdownWriting() }
}
