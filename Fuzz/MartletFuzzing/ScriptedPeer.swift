import MartletTransport
import Synchronization

/// A peer that plays scripts: the first connection the first one, and so on. Behind the last one it refuses
/// connections.
final class ScriptedPeer: StreamConnector {
    /// How a stream ends behind its script.
    enum End: Sendable {
        /// In order.
        case clean
        /// Without an orderly close, as TLS that was cut.
        case cut
        /// With a reset.
        case reset
    }

    /// How connections behave.
    struct Conduct: Sendable {
        /// Whether bytes move in pieces, with a wait between two, or all that there are at once.
        var isPiecemeal: Bool
        /// Whether requests are taken in pieces too, so that answers may come before they are whole.
        var takesPieces = false
        /// The sizes of the pieces received, used in turn.
        var pieceSizes: [Int]
        /// How streams end.
        var end: End
    }

    private let scripts: [[[UInt8]]]
    private let conduct: Conduct
    /// Guards the connections opened so far.
    private let opened = Mutex<[ScriptedStream]>([])

    /// A peer with the scripts of a text: `====` and LF between two connections, `----` and LF between two
    /// turns.
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
