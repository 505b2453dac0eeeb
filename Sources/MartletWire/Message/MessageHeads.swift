/// The request line and fields of a request (RFC 9112 §3, §5).
package struct RequestHead: Sendable, Equatable {
    /// The method, in the case it was sent.
    package var method: String
    /// The request target as sent: visible ASCII, never empty.
    package var target: String
    /// The version the client speaks.
    package var version: WireVersion
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Makes a head of its parts; encoders check them, this does not.
    package init(
        method: String, target: String, version: WireVersion = .http11, fields: FieldBlock = FieldBlock()
    ) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}

/// The status line and fields of a response (RFC 9112 §4, §5).
package struct ResponseHead: Sendable, Equatable {
    /// The version the server speaks.
    package var version: WireVersion
    /// The status, 100...999.
    package var status: Int
    /// The reason phrase: empty when missing, UTF-8 when valid, else Latin-1.
    package var reason: String
    /// Whether the reason phrase was read as Latin-1.
    package var isReasonLatin1: Bool
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Makes a head of its parts; encoders check them, this does not.
    package init(
        version: WireVersion = .http11, status: Int, reason: String = "", fields: FieldBlock = FieldBlock(),
        isReasonLatin1: Bool = false
    ) {
        self.version = version
        self.status = status
        self.reason = reason
        self.isReasonLatin1 = isReasonLatin1
        self.fields = fields
    }

    /// The reason phrase as it came.
    package var reasonBytes: [UInt8] {
        (isReasonLatin1 ? ByteText.latin1Bytes(reason) : nil) ?? Array(reason.utf8)
    }

    /// Heads that say the same are equal, however their reason phrases were written.
    package static func == (left: ResponseHead, right: ResponseHead) -> Bool {
        left.version == right.version && left.status == right.status && left.reason == right.reason
            && left.fields == right.fields
    }

    /// Whether this is an interim response (1xx, RFC 9110 §15.2).
    package var isInformational: Bool { status < 200 }
}

/// The version of HTTP/1 a message speaks (RFC 9112 §2.3).
///
/// A minor version above 1 counts as 1.1, as RFC 9110 §2.5 asks. Other major versions are no ``WireVersion``.
package enum WireVersion: Sendable, Hashable {
    /// HTTP/1.0.
    case http10
    /// HTTP/1.1.
    case http11

    /// The text of the version in a start line.
    package var text: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        }
    }
}
