import MartletWire

/// All that can be seen of one reading of a script.
struct WireOutcome: Equatable {
    var events: [WireEvent] = []
    /// Bytes that were left unread at the end.
    var unreadByteCount = 0
    var isReusable = false

    /// The final head, if one came.
    var head: ResponseHead? {
        for case .head(let head, _) in events { return head }
        return nil
    }

    /// How the final head's body is framed.
    var framing: BodyFraming? {
        for case .head(_, let framing) in events { return framing }
        return nil
    }

    /// The heads of the interim responses.
    var informational: [ResponseHead] {
        events.compactMap { if case .informational(let head) = $0 { head } else { nil } }
    }

    /// The head of the request, if one came.
    var request: RequestHead? {
        for case .request(let head, _) in events { return head }
        return nil
    }

    /// The payload, as text.
    var body: String {
        for case .body(let bytes) in events { return String(decoding: bytes, as: UTF8.self) }
        return ""
    }

    /// The trailers, if there were any.
    var trailers: FieldBlock? {
        for case .end(let trailers) in events { return trailers }
        return nil
    }

    /// Whether the message was reported complete.
    var isComplete: Bool {
        events.contains { if case .end = $0 { true } else { false } }
    }

    /// The fault, if one was thrown.
    var fault: WireError? {
        for case .fault(let error) in events { return error }
        return nil
    }
}
