package import MartletCore
import MartletStreams

/// The meaning of a response to a request for a file, or for a part of it.
package enum DownloadResponseRule {
    /// The part of a request that determines the meaning of its response.
    package struct Asked: Hashable, Sendable {
        /// The requested bytes; `nil` for the whole file without `Range`.
        package var range: Range<UInt64>?
        /// Whether `If-Range` bound the response to the known representation.
        package var isConditional: Bool

        /// The requested bytes as text for an error.
        package var words: String { range.map { "bytes \($0.bytePositions)" } ?? "the whole file" }
    }

    /// The meaning of a response.
    package enum Decision: Equatable, Sendable {
        /// Bytes of the known file: the number to skip at the start of the body, and the range of the rest.
        case part(passingOver: UInt64, Range<UInt64>, total: UInt64)
        /// The whole file from its first byte, in the known representation as far as validators show; or none is
        /// known.
        case whole
        /// The whole file from its first byte, in another representation than the known one.
        case changedWhole
        /// Possibly the whole file, but without a validator although the file had a strong one: more likely the page of
        /// a captive portal or a login.
        case unproven
        /// A part of the file in another representation than the known one.
        case changedPart
        /// The whole file in the known representation, although a part was requested with `If-Range`.
        case rangeIgnored
        /// The requested range is unsatisfiable; the total is the length of the file.
        case unsatisfied(total: UInt64?)
        /// A response that no server should send.
        case rejected(String)
        /// A status that is not a success.
        case failed

        /// Whether an additional transfer uses the response, or handles it as a failure. If not, the transfer ends.
        package var isUsableByAdditional: Bool {
            switch self {
            case .part, .rangeIgnored, .failed: true
            case .whole, .changedWhole, .unproven, .changedPart, .unsatisfied, .rejected: false
            }
        }
    }

    /// Classifies a response.
    /// - Parameters:
    ///   - known: The representation of the received bytes; `nil` without any.
    ///   - former: The representation with a strong validator that was discarded, if no other has been seen since.
    ///   - total: The length of the file, if it is known.
    package static func decision(
        _ asked: Asked, _ responseHead: DownloadResponseHead, known: Representation?, former: Representation? = nil,
        total: UInt64?
    ) -> Decision {
        switch responseHead.status {
        case 206: return part(asked, responseHead, known: known, total: total)
        case 200, 203:
            // Without a comparable validator, another content coding alone does not show a change.
            if let known = known ?? former, known.hasCondition,
                !responseHead.representation.contradictsValidator(of: known),
                !known.isProven(by: responseHead.representation)
            {
                return .unproven
            }
            guard let known else { return .whole }
            // Without a validator, a response without the requested range shows only that the server has no ranges.
            guard asked.range != nil, known.hasCondition else {
                return known.differs(from: responseHead.representation) ? .changedWhole : .whole
            }
            guard known.isProven(by: responseHead.representation) else { return .changedWhole }
            return asked.isConditional ? .rangeIgnored : .whole
        case 416:
            guard asked.range != nil else { return .failed }
            // Another representation may have the same length.
            guard known?.differs(from: responseHead.representation) != true,
                case .range(.unsatisfied(let total)) = responseHead.part
            else { return .unsatisfied(total: nil) }
            return .unsatisfied(total: total)
        default: return .failed
        }
    }

    private static func part(
        _ asked: Asked, _ responseHead: DownloadResponseHead, known: Representation?, total: UInt64?
    ) -> Decision {
        guard let range = asked.range else {
            return .rejected("the response is partial, but the whole file was requested")
        }
        guard !responseHead.isMultipart else {
            return .rejected("the response has several parts, but one was requested")
        }
        if let known, known.differs(from: responseHead.representation) { return .changedPart }
        let came: Range<UInt64>
        let length: UInt64
        switch responseHead.part {
        case .none: return .rejected("the response does not say which bytes it has")
        case .unreadable: return .rejected("Content-Range is invalid")
        case .range(.unsatisfied): return .rejected("the response says that it has no bytes")
        case .range(.satisfied(_, nil)): return .rejected("the response does not say how long the file is")
        case .range(.satisfied(let bytes, let count?)): (came, length) = (bytes, count)
        }
        if let total, length != total {
            return .rejected("the file is \(total) bytes long, but the response says \(length)")
        }
        guard came.lowerBound <= range.lowerBound, came.upperBound > range.lowerBound else {
            return .rejected("the response has other bytes than those requested")
        }
        if let announced = responseHead.byteCount, announced < came.byteCount {
            return .rejected("the response is \(announced) bytes long, but says that it has \(came.byteCount)")
        }
        if known == nil, responseHead.representation.coding != nil {
            // Another request may get the rest of the file without the coding.
            return .rejected("the part has a content coding, but none was requested")
        }
        if let known, !asked.isConditional, known.hasCondition, !known.isProven(by: responseHead.representation) {
            return .rejected("nothing in the response proves that its bytes belong to the unchanged file")
        }
        if let tag = known?.entityTag, !tag.isWeak, responseHead.representation.entityTag == nil {
            // A part has the tag of the whole (RFC 9110 §15.3.7): a server that omits it may ignore If-Range too.
            return .rejected("the response has no entity tag, but the file had one")
        }
        let end = min(came.upperBound, range.upperBound)
        return .part(passingOver: range.lowerBound - came.lowerBound, range.lowerBound..<end, total: length)
    }
}

/// The parts of a response head that a download needs.
package struct DownloadResponseHead: Sendable {
    /// The value of `Content-Range`.
    package enum Part: Hashable, Sendable {
        /// The field is absent.
        case none
        /// There are several fields, or one that cannot be parsed.
        case unreadable(String)
        /// The parsed field.
        case range(ContentRange)
    }

    package var status: Int
    /// The reason phrase, which may be empty.
    package var reason: String
    /// The value of `Content-Range`.
    package var part: Part
    /// Whether the body is `multipart/byteranges`.
    package var isMultipart: Bool
    /// The announced length of the body; `nil` without a `Content-Length`.
    package var byteCount: UInt64?
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// `Retry-After`; `nil` without a valid one.
    package var retryAfter: Duration?
    /// The digests of the whole file whose algorithms are supported: `Repr-Digest` (RFC 9530), and `Content-Digest` in
    /// a 200, whose content is the file.
    package var digests: [Checksum]
    /// `Last-Modified`, in seconds since 1970.
    package var modified: Int64?
    /// The value of `Content-Disposition`; `nil` without one.
    package var disposition: String?
    /// The value of `Content-Type`; `nil` without one.
    package var contentType: String?
    package var url: HTTPURL

    /// Extracts the parts of a response head. `now` is in seconds since 1970.
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
        contentType = fields.firstValue(of: "Content-Type")
        isMultipart = (contentType ?? "").lowercased().hasPrefix("multipart/byteranges")
        self.byteCount = byteCount
        (representation, modified) = Representation.found(in: fields)
        retryAfter = fields.rawValues(of: "Retry-After").first.flatMap { RetryAfter($0, now: now) }?.delay
        var found = head.status == 200 ? DigestField(fields.rawValues(of: "Content-Digest")).digests : [:]
        found.merge(DigestField(fields.rawValues(of: "Repr-Digest")).digests) { $1 }
        digests = DigestAlgorithm.allCases.compactMap { algorithm in
            found[algorithm].flatMap { Checksum(algorithm == .sha512 ? .sha512 : .sha256, $0) }
        }
        disposition = fields.firstValue(of: "Content-Disposition")
        self.url = url
    }

    /// The status and the range as text for an error.
    package var words: String {
        let status = reason.isEmpty ? "\(status)" : "\(status) \(reason)"
        return switch part {
        case .none: status
        case .unreadable(let text): "\(status) with Content-Range: \(text)"
        case .range(let range): "\(status) with Content-Range: \(range.text)"
        }
    }
}

package struct DownloadRequest: Sendable {
    /// The number of the transfer.
    package var id: UInt64
    package var url: HTTPURL
    /// The requested bytes; `nil` for the whole file without `Range`. A range up to `UInt64.max` has no end.
    package var range: Range<UInt64>?
    /// The value of `If-Range`; `nil` for none.
    package var condition: String?
    var time: MonotonicTime
    /// The number of bytes at the start of the range that are already received, and are requested for comparison.
    package var overlap: UInt64 = 0
    /// The index of its URL among those of the file; 0 for that of the download.
    package var source = 0
    /// Whether the URL is a mirror on another origin than that of the download, which gets no credentials.
    var isForeign = false
    /// Whether another transfer from the same URL was active when the request was made. A failure may then only mean
    /// that the server rejects additional connections, also if that transfer has ended since.
    var isAdditional = false
    /// The user info of the URL as it was given, for its origin.
    var userInfo: HTTPURL.UserInfo?

    /// The request as ``DownloadResponseRule`` needs it.
    var asked: DownloadResponseRule.Asked { DownloadResponseRule.Asked(range: range, isConditional: condition != nil) }

    /// The value of `Range`; `nil` for none.
    package var rangeField: String? { range.map { "bytes=\($0.bytePositions)" } }
}

extension Range<UInt64> {
    /// The positions of the first and the last byte, as in `Range`; without the last one if the range has no end.
    fileprivate var bytePositions: String { upperBound == .max ? "\(lowerBound)-" : "\(lowerBound)-\(upperBound &- 1)" }
}

/// The use that a transfer makes of its response.
package enum ResponseAction: Sendable {
    /// No use: the body is not read.
    case leave
    /// Writes the body.
    /// - `passingOver`: the number of bytes to skip at its start.
    /// - `comparing`: the number of bytes after those to compare with the received ones.
    /// - `restartsTransfer`: whether a new file replaces the received bytes.
    case take(passingOver: UInt64, comparing: UInt64, restartsTransfer: Bool)
}
