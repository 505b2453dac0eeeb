import MartletWire

/// The observable outcome of reading a script once.
struct WireOutcome: Equatable {
    var events: [WireEvent] = []
    /// The number of bytes that were left unread at the end.
    var unreadByteCount = 0
    var isReusable = false

    /// The final response head, or `nil` if none was read.
    var head: ResponseHead? {
        for case .head(let head, _) in events { return head }
        return nil
    }

    /// The framing of the final head's body.
    var framing: BodyFraming? {
        for case .head(_, let framing) in events { return framing }
        return nil
    }

    /// The heads of the interim responses.
    var informational: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// The request head, or `nil` if none was read.
    var request: RequestHead? {
        for case .request(let head, _) in events { return head }
        return nil
    }

    /// The payload, as text.
    var body: String {
        for case .body(let bytes) in events { return String(decoding: bytes, as: UTF8.self) }
        return ""
    }

    /// The trailers, or `nil` if there were none.
    var trailers: FieldBlock? {
        for case .end(let trailers) in events { return trailers }
        return nil
    }

    /// Whether the message was reported as complete.
    var isComplete: Bool {
        events.contains { if case .end = $0 { true } else { false } }
    }

    /// The error that was thrown, or `nil`.
    var fault: WireError? {
        for case .fault(let error) in events { return error }
        return nil
    }
}
