import MartletTransport
import Synchronization

/// A peer that plays one script per connection in order. It refuses connections after the last script.
final class ScriptedPeer: StreamConnector {
    /// The end of a stream after its script.
    enum End: Sendable {
        /// An orderly close.
        case clean
        /// An end without an orderly close, as of a truncated TLS stream.
        case cut
        /// A reset of the connection.
        case reset
    }

    /// The behavior of connections.
    struct Conduct: Sendable {
        /// Whether bytes move in pieces with waits in between, or all available bytes together.
        var isPiecemeal: Bool
        /// Whether requests are also accepted in pieces, so that a response can arrive before they are complete.
        var takesPieces = false
        /// The sizes of the pieces received, used in turn.
        var pieceSizes: [Int]
        /// The end of the streams.
        var end: End
    }

    private let scripts: [[[UInt8]]]
    private let conduct: Conduct
    /// The connections that were opened so far.
    private let opened = Mutex<[ScriptedStream]>([])

    /// Creates a peer from the scripts in a text. `====` and LF separate connections, and `----` and LF separate turns.
    init(_ text: [UInt8], conduct: Conduct) {
        let ends = (connection: Array("====\n".utf8), turn: Array("----\n".utf8))
        scripts = ScriptedPeer.split(text, at: ends.connection).map { ScriptedPeer.split($0, at: ends.turn) }
        self.conduct = conduct
    }

    /// The connections opened so far.
    var streams: [ScriptedStream] { opened.withLock { $0 } }

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let stream = opened.withLock { opened -> ScriptedStream? in
            guard opened.count < scripts.count else { return nil }
            let stream = ScriptedStream(turns: scripts[opened.count], conduct: conduct)
            opened.append(stream)
            return stream
        }
        guard let stream else { throw .system(SystemError(operation: "connect", code: 111)) }
        return stream
    }

    private static func split(_ bytes: [UInt8], at separator: [UInt8]) -> [[UInt8]] {
        var parts: [[UInt8]] = [[]]
        var index = 0
        while index < bytes.count {
            if bytes[index...].starts(with: separator) {
                parts.append([])
                index += separator.count
            } else {
                parts[parts.count - 1].append(bytes[index])
                index += 1
            }
        }
        return parts
    }
}
