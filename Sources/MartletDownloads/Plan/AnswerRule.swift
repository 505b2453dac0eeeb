import MartletCredentials
import MartletURL
import MartletCaching
package import MartletCore
import MartletNetwork
import MartletTransport
package import MartletWire

/// What an answer to a request for a file, or for a part of it, is to the download.
package enum AnswerRule {
    /// What was asked for.
    package struct Asked: Hashable, Sendable {
        /// The bytes; nil for the whole file without `Range`.
        package var range: Range<UInt64>?
        /// Whether the answer was bound to the known state by `If-Range`.
        package var isConditional: Bool

        /// What was asked, in words for an error.
        package var words: String {
            guard let range else { return "the whole file" }
            if range.upperBound == .max { return "bytes \(range.lowerBound)-" }
            return "bytes \(range.lowerBound)-\(range.upperBound &- 1)"
        }
    }

    /// The judgement.
    package enum Verdict: Equatable, Sendable {
        /// Bytes of the file as it is known: so many of the body are to be passed over, and the rest are these.
        case part(passingOver: UInt64, Range<UInt64>, total: UInt64)
        /// The whole file from its first byte, in the state that is known or in the only one there is.
        case whole
        /// The whole file from its first byte, in another state than was known.
        case changedWhole
        /// Perhaps the whole file, but without a validator where the file had a strong one: rather the page of a captive
        /// portal or of a login than another state of the file.
        case unproven
        /// A part of the file in another state than was known.
        case changedPart
        /// The whole file in the very state that is known, though a part was asked for, bound by `If-Range`.
        case unwilling
        /// No byte where some were asked for; the file has so many.
        case unsatisfied(total: UInt64?)
        /// Something that no server should answer.
        case refused(String)
        /// A status that is no success.
        case failed

        /// Whether it says something to an additional transfer; where it does not, there are enough transfers.
        ///
        /// A status that is no success is judged as the failures of connections are.
        package var isOfUseToAdditional: Bool {
            switch self {
            case .part, .unwilling, .failed: true
            case .whole, .changedWhole, .unproven, .changedPart, .unsatisfied, .refused: false
            }
        }
    }

    /// Judges an answer.
    /// - Parameters:
    ///   - asked: What was asked for.
    ///   - facts: What came.
    ///   - known: The state of the bytes that are there; nil where there are none.
    ///   - former: The state with a strong validator that was given up, where no other has been seen since.
    ///   - total: How long the file is known to be.
    package static func verdict(
        _ asked: Asked, _ facts: AnswerFacts, known: Representation?, former: Representation? = nil,
        total: UInt64?
    ) -> Verdict {
        switch facts.status {
        case 206: return part(asked, facts, known: known, total: total)
        case 200, 203:
            // Its coding says nothing about a file that it does not name.
            if let known = known ?? former, known.hasCondition,
                !facts.representation.contradictsValidator(of: known),
                !known.isProven(by: facts.representation)
            {
                return .unproven
            }
            guard let known else { return .whole }
            guard asked.range != nil else {
                return known.differs(from: facts.representation) ? .changedWhole : .whole
            }
            if asked.isConditional, known.isProven(by: facts.representation) { return .unwilling }
            return known.isProven(by: facts.representation) ? .whole : .changedWhole
        case 416:
            guard asked.range != nil else { return .failed }
            // As long as the file that is known, and another one.
            if let known, known.differs(from: facts.representation) { return .unsatisfied(total: nil) }
            if case .range(.unsatisfied(let total)) = facts.part { return .unsatisfied(total: total) }
            return .unsatisfied(total: nil)
        default: return .failed
        }
    }

    private static func part(
        _ asked: Asked, _ facts: AnswerFacts, known: Representation?, total: UInt64?
    ) -> Verdict {
        guard let range = asked.range else {
            return .refused("a part came, and the whole file was asked for")
        }
        guard !facts.isMultipart else { return .refused("several parts came, and one was asked for") }
        if let known, known.differs(from: facts.representation) { return .changedPart }
        let came: Range<UInt64>
        let length: UInt64
        switch facts.part {
        case .none: return .refused("the answer does not say which bytes it has")
        case .unreadable: return .refused("what the answer says of its bytes cannot be read")
        case .range(.unsatisfied): return .refused("the answer says that it has no bytes")
        case .range(.satisfied(_, nil)): return .refused("the answer does not say how long the file is")
        case .range(.satisfied(let bytes, let count?)): (came, length) = (bytes, count)
        }
        if let total, length != total {
            return .refused("the file is \(total) bytes long, and the answer says \(length)")
        }
        guard came.lowerBound <= range.lowerBound, came.upperBound > range.lowerBound else {
            return .refused("the answer has other bytes than those asked for")
        }
        if let announced = facts.byteCount, announced < came.byteCount {
            return .refused("the answer is \(announced) bytes long, and says it has \(came.byteCount)")
        }
        if known == nil, facts.representation.coding != nil {
            // A part of a coded file, of which another request may find the plain one.
            return .refused("a part came in a content coding, and none was asked for")
        }
        if let known, !asked.isConditional, known.hasCondition, !known.isProven(by: facts.representation) {
            return .refused("nothing in the answer proves that its bytes are those of the file as it was")
        }
        if let tag = known?.entityTag, !tag.isWeak, facts.representation.entityTag == nil {
            // A part has the tag that the whole would have (RFC 9110 §15.3.7): who leaves it out may not heed If-Range either.
            return .refused("the answer has no entity tag, and the file had one")
        }
        let end = min(came.upperBound, range.upperBound)
        return .part(passingOver: range.lowerBound - came.lowerBound, range.lowerBound..<end, total: length)
    }
}

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
        retryAfter = fields.rawValues(of: "Retry-After").first.flatMap { RetryAfter($0, now: now) }?.delay
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

/// A request that a download makes.
package struct DownloadQuestion: Sendable {
    /// The number of the transfer.
    package var id: UInt64
    /// Where it goes.
    package var url: HTTPURL
    /// The bytes that are asked for; nil for the whole file without `Range`. One that ends at the last number there is has
    /// no end.
    package var range: Range<UInt64>?
    /// What `If-Range` says; nil for none.
    package var condition: String?
    /// When it was asked.
    var time: MonotonicTime
    /// How many of the bytes, from the first, are there already, and are asked for to be compared.
    package var overlap: UInt64 = 0

    /// What was asked, for the judgement of the answer.
    var asked: AnswerRule.Asked { AnswerRule.Asked(range: range, isConditional: condition != nil) }

    /// `Range`; nil for none.
    package var rangeField: String? {
        guard let range else { return nil }
        return range.upperBound == .max
            ? "bytes=\(range.lowerBound)-" : "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    }
}

/// What a transfer does with the answer to its question.
package enum DownloadReception: Sendable {
    /// Nothing: the body is not read.
    case leave
    /// Writes the body.
    /// - `passingOver`: how many bytes of it do not count.
    /// - `comparing`: how many behind those are to be compared with what is there.
    /// - `beginsAnew`: whether a new file takes the place of what was there.
    case take(passingOver: UInt64, comparing: UInt64, beginsAnew: Bool)
}
