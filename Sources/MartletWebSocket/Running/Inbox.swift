/// The received messages that are not read yet, as a queue of pieces with a size. Pure: the connection waits.
struct Inbox {
    private enum Piece {
        case start(WebSocketMessage.Kind)
        case data([UInt8])
        case end
    }

    /// The size that a piece has in addition to its bytes, so that empty messages count, too.
    private static let overhead = 64

    private var pieces: [Piece] = []
    /// The index of the first unread piece: those before it are removed together.
    private var first = 0
    /// The message that ``takeMessage()`` collects.
    private var collected: (kind: WebSocketMessage.Kind, bytes: [UInt8])?
    /// The number of the message whose pieces are read; 0 before the first.
    private var number = 0
    private var isWithinMessage = false
    /// The size of all pieces in bytes.
    private(set) var byteCount = 0

    /// Adds an event of a message; other events are ignored.
    mutating func add(_ event: MessageParser.Event) {
        switch event {
        case .start(let kind): pieces.append(.start(kind))
        case .data(let bytes):
            byteCount += bytes.count
            // Small fragments are joined, because each array has a cost.
            if bytes.count < 1024, pieces.count > first, case .data(var last)? = pieces.last,
                last.count + bytes.count <= 16 << 10
            {
                pieces.removeLast()
                last += bytes
                pieces.append(.data(last))
                return
            }
            pieces.append(.data(bytes))
        case .end: pieces.append(.end)
        case .ping, .pong, .close: return
        }
        byteCount += Inbox.overhead
    }

    private mutating func pop() -> Piece? {
        guard first < pieces.count else { return nil }
        let piece = pieces[first]
        first += 1
        byteCount -= Inbox.overhead
        if case .data(let bytes) = piece { byteCount -= bytes.count }
        if first == pieces.count || first >= 1024 {
            pieces.removeFirst(first)
            first = 0
        }
        return piece
    }

    /// Returns the next whole message; `nil` if its end has not arrived. The rest of a message that is read in pieces
    /// is skipped.
    mutating func takeMessage() -> WebSocketMessage? {
        while let piece = pop() {
            switch piece {
            case .start(let kind):
                number += 1
                (collected, isWithinMessage) = ((kind, []), true)
            // Most messages are one piece, which is not copied.
            case .data(let bytes) where collected?.bytes.isEmpty == true: collected?.bytes = bytes
            case .data(let bytes): collected?.bytes += bytes
            case .end:
                isWithinMessage = false
                if let (kind, bytes) = collected.take() { return WebSocketMessage(kind, bytes) }
            }
        }
        return nil
    }

    /// Returns the beginning of the next message; `nil` if it has not arrived. The rest of the current one is skipped.
    mutating func takeStart() -> (kind: WebSocketMessage.Kind, number: Int)? {
        collected = nil
        while let piece = pop() {
            if case .start(let kind) = piece {
                (number, isWithinMessage) = (number + 1, true)
                return (kind, number)
            }
        }
        return nil
    }

    /// Returns the next bytes of a message; empty at its end, `nil` if they have not arrived.
    /// - Throws: `.messageSkipped` if a later message was requested.
    mutating func takePiece(of message: Int) throws(WebSocketError) -> [UInt8]? {
        guard message == number, collected == nil else { throw .messageSkipped }
        guard isWithinMessage else { return [] }
        switch pop() {
        case .data(let bytes): return bytes
        case .end:
            isWithinMessage = false
            return []
        case .start, nil: return nil
        }
    }
}
