package import MartletClient
package import MartletWire

/// What the head of an answer says that matters to a download.
package struct AnswerFacts: Sendable {
    /// What `Content-Range` says.
    package enum Part: Hashable, Sendable {
        /// There is no such field.
        case none
        /// There are several, or one that cannot be read.
        case unreadable(String)
        /// There is one.
        case range(ContentRange)
    }

    /// The status.
    package var status: Int
    /// The reason phrase; empty where there is none.
    package var reason: String
    /// `Content-Range`.
    package var part: Part
    /// Whether the body is `multipart/byteranges`.
    package var isMultipart: Bool
    /// How long the body is said to be; nil where its end is told otherwise.
    package var byteCount: UInt64?
    /// What its bytes belong to.
    package var representation: Representation
    /// `Retry-After`; nil where it has none that can be read.
    package var retryAfter: Duration?
    /// `Repr-Digest` (RFC 9530), the algorithms that can be computed.
    package var digests: [Checksum]
    /// `Last-Modified`, in seconds since 1970.
    package var modified: Int64?
    /// `Content-Disposition`.
    package var disposition: String?
    /// Where it came from.
    package var url: HTTPURL

    /// Reads the head of an answer.
    /// - Parameters:
    ///   - head: The head.
    ///   - byteCount: How long its body is said to be.
    ///   - url: Where it came from.
    ///   - now: Seconds since 1970.
    package init(_ head: ResponseHead, byteCount: UInt64?, url: HTTPURL, now: Int64) {
        status = head.status
        reason = String(head.reason.prefix(64))
        let fields = head.fields
        let ranges = fields.values(of: "Content-Range")
        switch ranges.count {
        case 0: part = .none
        case 1: part = ContentRange(parsing: ranges[0]).map(Part.range) ?? .unreadable(ranges[0])
        default: part = .unreadable(ranges.joined(separator: ", "))
        }
        isMultipart = (fields.firstValue(of: "Content-Type") ?? "").lowercased()
            .hasPrefix("multipart/byteranges")
        self.byteCount = byteCount
        representation = Representation(fields)
        retryAfter =
            fields.rawValues(of: "Retry-After").first
            .flatMap { RetryAfter($0, now: now) }?.delay
        digests = ReprDigest.checksums(fields.values(of: "Repr-Digest"))
        modified = representation.lastModified.flatMap { HTTPDate($0) }?.secondsSinceEpoch
        disposition = fields.firstValue(of: "Content-Disposition")
        self.url = url
    }

    /// What came, in words for an error.
    package var words: String {
        let status = reason.isEmpty ? "\(status)" : "\(status) \(reason)"
        return switch part {
        case .none: status
        case .unreadable(let text): "\(status) with Content-Range: \(text)"
        case .range(let range): "\(status) with Content-Range: \(range.text)"
        }
    }
}
