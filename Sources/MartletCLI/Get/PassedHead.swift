import MartletWire

/// A head that went by before the answer that counts.
enum PassedHead: Sendable {
    /// Of a request, as its bytes.
    case sent([UInt8])
    /// Of a proxy's answer to CONNECT, or of an answer after which the same request was sent once more.
    case received(ResponseHead)

    /// What was sent; nil for an answer.
    var sentBytes: [UInt8]? {
        if case .sent(let bytes) = self { bytes } else { nil }
    }

    /// What was received; nil for a request.
    var receivedBytes: [UInt8]? {
        if case .received(let head) = self { HeadText.bytes(of: head) } else { nil }
    }
}

extension [PassedHead] {
    /// The request that was sent last, as its bytes.
    var lastSentBytes: [UInt8]? { lazy.compactMap(\.sentBytes).last }
}
