/// What a range origin is about to answer: the right answer at first, which a ``RangeAct`` may change into any other.
package struct RangeAnswer: Sendable {
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

    init(to request: RangeRequest, of version: RangeVersion, by conduct: RangeConduct) {
        self.version = version
        framing = conduct.framing
        pace = conduct.pace
        fields = conduct.fields
        if let entityTag = version.entityTag { fields["ETag"] = entityTag }
        if let lastModified = version.lastModified {
            fields["Last-Modified"] = RangeConduct.date(lastModified)
        }
        if let date = conduct.date { fields["Date"] = RangeConduct.date(date) }
        switch conduct.decision(on: request, version) {
        case .part(let range, let total):
            status = 206
            body = range
            asked = range
            fields["Content-Range"] = RangeAnswer.contentRange(range, total)
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
        fields["Content-Range"] = RangeAnswer.contentRange(range, version.byteCount)
    }
}
