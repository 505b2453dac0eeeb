package import MartletTesting
import MartletWire

/// How a range origin behaves, as a value: what it serves, how it deals with ranges, and what goes wrong.
package struct RangeBehavior: Sendable {
    /// What becomes of the field Range.
    package enum Ranges: Hashable, Sendable {
        /// It is heeded (RFC 9110 §14).
        case served
        /// It is ignored: each answer is the whole file.
        case ignored
        /// It is ignored where there is If-Range, whatever that says, as some caches do.
        case ignoredWithIfRange
    }

    /// When the next version takes the place of the present one.
    package enum Flip: Hashable, Sendable {
        /// Behind so many requests.
        case afterRequests(Int)
        /// As soon as so many bytes of bodies were sent.
        case afterBytes(UInt64)
    }

    /// What is served, one version after the other; never empty.
    package var versions: [RangeVersion]
    /// When each but the last version ends.
    package var flips: [Flip] = []
    /// Whether answers of the old version are cut when the next one comes, as by a server that starts anew.
    package var cutsAtFlips = false
    /// What becomes of Range.
    package var ranges = Ranges.served
    /// Whether If-Range is heeded; one that does not may answer with a part of another version.
    package var heedsIfRange = true
    /// How the length of bodies is told.
    package var framing = OriginFraming.automatic
    /// Fields of each answer besides its own.
    package var fields = OriginFields()
    /// The Date of answers, in seconds since 1970; `nil` for the present.
    package var date: Int64?
    /// How fast bodies are sent on each connection.
    package var pace: RangePace?
    /// What is done to answers, all that apply in this order.
    package var acts: [RangeResponseOverride] = []

    /// The conduct of a good origin that serves these versions.
    package init(_ versions: RangeVersion..., acts: [RangeResponseOverride] = []) {
        self.versions = versions
        self.acts = acts
    }

    /// This conduct after a change.
    package func with(_ change: (inout RangeBehavior) -> Void) -> RangeBehavior {
        var copy = self
        change(&copy)
        return copy
    }

    /// A date as HTTP writes it.
    package static func date(_ secondsSinceEpoch: Int64) -> String {
        HTTPDate(secondsSinceEpoch: secondsSinceEpoch).text
    }

    /// Which version is served after so many requests and bytes, from 0.
    func versionIndex(requests: Int, bytes: UInt64) -> Int {
        let passed = flips.filter { flip in
            switch flip {
            case .afterRequests(let count): requests > count
            case .afterBytes(let count): bytes >= count
            }
        }
        return min(passed.count, versions.count - 1)
    }

    /// What a request gets of a version.
    func decision(on request: RangeRequest, _ version: RangeVersion) -> ContentDecision {
        var fields = request.fields
        switch ranges {
        case .served: break
        case .ignored: fields["Range"] = nil
        case .ignoredWithIfRange: if fields.contains("If-Range") { fields["Range"] = nil }
        }
        if !heedsIfRange { fields["If-Range"] = nil }
        return ContentDecision(
            method: request.method, headers: fields, entityTag: version.entityTag,
            lastModified: version.lastModified.map { HTTPDate(secondsSinceEpoch: $0) },
            length: version.byteCount)
    }
}

/// What a range origin does to the answers of some requests.
package struct RangeResponseOverride: Sendable {
    /// Which requests it is done to.
    package var applies: @Sendable (RangeRequest) -> Bool
    /// What is done to the answer.
    package var change: @Sendable (inout RangeResponse) -> Void

    /// An act.
    package init(
        on applies: @escaping @Sendable (RangeRequest) -> Bool,
        _ change: @escaping @Sendable (inout RangeResponse) -> Void
    ) {
        self.applies = applies
        self.change = change
    }

    /// Changes each answer.
    package static func always(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { _ in true }, change)
    }

    /// Changes the answer to one request, by its number.
    package static func onRequest(
        _ number: Int, _ change: @escaping @Sendable (inout RangeResponse) -> Void
    ) -> RangeResponseOverride {
        RangeResponseOverride(on: { $0.number == number }, change)
    }

    /// Changes the answers to requests for parts.
    package static func onRanges(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { $0.range != nil }, change)
    }

    /// Changes the answers to requests for what is behind the first byte.
    package static func onResumptions(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { $0.isResumption }, change)
    }

    /// Ends the connection in the body of the answer to one request.
    package static func cut(
        request number: Int, after byteCount: UInt64, by kind: OriginFault.Kind = .close
    ) -> RangeResponseOverride {
        .onRequest(number) { $0.fault = OriginFault(kind, afterBodyBytes: byteCount) }
    }

    /// Holds the answer to one request: behind so many bytes the signal `name` is raised and `name go` is awaited.
    package static func hold(request number: Int, after byteCount: UInt64, _ name: String)
        -> RangeResponseOverride
    {
        .onRequest(number) { $0.gate = (name, byteCount) }
    }

    /// Answers requests from one number on in another way altogether.
    package static func answer(
        from number: Int, through last: Int = .max, _ response: OriginResponse
    ) -> RangeResponseOverride {
        RangeResponseOverride(on: { $0.number >= number && $0.number <= last }) { $0.replacement = response }
    }
}

/// What a range origin is about to answer: the right answer at first, which a ``RangeResponseOverride`` may change into any other.
package struct RangeResponse: Sendable {
    /// The status: 200, 206 or 416 at first.
    package var status: Int
    /// The fields, without those that the framing adds.
    package var fields: OriginFields
    /// Which bytes of the version are sent.
    package var body: Range<UInt64>
    /// How many bytes are sent behind the body that nobody promised.
    package var surplus: UInt64 = 0
    /// Bytes that are sent in place of the version's; `nil` for these.
    package var contents: [UInt8]?
    /// The Content-Length, right or wrong; `nil` for what ``framing`` says.
    package var declaredByteCount: UInt64?
    /// How the body's length is told.
    package var framing = OriginFraming.automatic
    /// What goes wrong on purpose.
    package var fault: OriginFault?
    /// How fast the body is sent; `nil`: as fast as the client takes it.
    package var pace: RangePace?
    /// Behind so many bytes of the body, the signal of this name is raised, and the one of this name with ` go` behind it is
    /// awaited.
    package var gate: (name: String, byteCount: UInt64)?
    /// An answer of another kind altogether, in place of all of the above.
    package var replacement: OriginResponse?
    /// The bounds asked for, where there are any.
    package let asked: Range<UInt64>?
    /// The version.
    package let version: RangeVersion

    init(to request: RangeRequest, of version: RangeVersion, by conduct: RangeBehavior) {
        self.version = version
        framing = conduct.framing
        pace = conduct.pace
        fields = conduct.fields
        if let entityTag = version.entityTag { fields["ETag"] = entityTag }
        if let lastModified = version.lastModified {
            fields["Last-Modified"] = RangeBehavior.date(lastModified)
        }
        if let date = conduct.date { fields["Date"] = RangeBehavior.date(date) }
        switch conduct.decision(on: request, version) {
        case .part(let range, let total):
            status = 206
            body = range
            asked = range
            fields["Content-Range"] = RangeResponse.contentRange(range, total)
        case .unsatisfiable(let total):
            status = 416
            body = 0..<0
            asked = nil
            fields["Content-Range"] = "bytes */\(total)"
        case .whole, .notModified, .preconditionFailed:
            status = 200
            body = 0..<version.byteCount
            asked = nil
        }
    }

    /// Content-Range as it is to be.
    package static func contentRange(_ range: Range<UInt64>, _ total: UInt64) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
    }

    /// Sends another part than the one asked for, and says so.
    package mutating func send(_ range: Range<UInt64>) {
        body = range
        fields["Content-Range"] = RangeResponse.contentRange(range, version.byteCount)
    }
}

/// How fast a range origin sends on each connection.
package struct RangePace: Hashable, Sendable {
    /// Bytes a second, at least 1.
    package var bytesPerSecond: Int
    /// How many bytes of an answer are sent at this pace before ``laterBytesPerSecond`` holds.
    package var changesAfter: UInt64?
    /// Bytes a second from then on, at least 1.
    package var laterBytesPerSecond: Int

    /// A pace, which may change once in each answer.
    package init(_ bytesPerSecond: Int, changingAfter count: UInt64? = nil, to later: Int? = nil) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        changesAfter = count
        laterBytesPerSecond = max(1, later ?? bytesPerSecond)
    }

    /// The pause behind a piece that ends at an offset of the answer.
    package func pause(after count: Int, endingAt offset: UInt64) -> Duration {
        let isLater = changesAfter.map { offset > $0 } ?? false
        return .seconds(Double(count) / Double(isLater ? laterBytesPerSecond : bytesPerSecond))
    }

    /// How much is sent at once: a twentieth of a second's worth, and at most 64 KiB.
    package func pieceSize(at offset: UInt64) -> Int {
        let isLater = changesAfter.map { offset >= $0 } ?? false
        return min(64 << 10, max(1, (isLater ? laterBytesPerSecond : bytesPerSecond) / 20))
    }
}

/// A request to a range origin, and what became of it.
package struct RangeRequest: Sendable {
    /// Its number among all requests of the conduct, from 1.
    package var number: Int
    /// The number of the connection it came on, from 1.
    package var connection: Int
    /// The method, as sent.
    package var method: HTTPRequest.Method
    /// The request target, as sent.
    package var target: String
    /// The fields, as sent.
    package var fields: OriginFields
    /// The value of Range; `nil` without one.
    package var range: String?
    /// The first byte asked for: 0 where there is no Range, `nil` where it cannot be read or counts from the end.
    package var start: UInt64?
    /// The last byte asked for; `nil` where it is open.
    package var end: UInt64?
    /// The value of If-Range; `nil` without one.
    package var ifRange: String?
    /// The status of the answer.
    package var status = 0
    /// The Content-Range of the answer, joined where there were several; `nil` for none.
    package var contentRange: String?
    /// Which version the answer was of, from 0; `nil` where it was of none.
    package var version: Int?
    /// How many bytes of the body were handed to the system.
    package var sentByteCount: UInt64 = 0

    /// Whether it asks for bytes behind the first.
    package var isResumption: Bool { range != nil && start != 0 }

    init(_ request: OriginRequest, number: Int) {
        self.number = number
        connection = request.connection.number
        method = request.method
        target = request.target
        fields = request.fields
        range = request.fields["Range"]
        ifRange = request.fields["If-Range"]
        (start, end) = RangeRequest.bounds(of: range)
    }

    /// The bounds of a single range of bytes.
    private static func bounds(of field: String?) -> (start: UInt64?, end: UInt64?) {
        guard let field else { return (0, nil) }
        guard field.hasPrefix("bytes=") else { return (nil, nil) }
        let parts = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return (nil, nil) }
        return (UInt64(parts[0]), UInt64(parts[1]))
    }
}
