/// Why bytes are not a message, or why a message may not become bytes.
package struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was wrong.
    package let code: WireErrorCode
    /// Where it was.
    ///
    /// For a remote fault: the byte offset in the message, counted from the first byte of its head. For a
    /// local fault: the byte index in the offending string.
    package let offset: Int

    /// Makes an error of a cause at a place.
    package init(_ code: WireErrorCode, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// Whether the fault lies with what this side wanted to send; nothing was written then.
    package var isLocalFault: Bool { code.isLocalFault }

    /// Whether it says no more than that the stream ended too early.
    package var isEndOfStream: Bool {
        switch code {
        case .emptyResponse, .truncated: true
        default: false
        }
    }

    /// What was wrong and where, as a sentence for people.
    package var description: String {
        switch code {
        case .emptyResponse: "the peer closed the connection without a byte of a response"
        case .truncated(let truncation): truncation.description
        case .bodyTooLong, .bodyTooShort: "\(code.reason) (at byte \(offset) of the body)"
        case _ where isLocalFault: "\(code.reason) (at index \(offset)); nothing was written"
        default: "\(code.reason) (at byte \(offset) of the message)"
        }
    }
}
