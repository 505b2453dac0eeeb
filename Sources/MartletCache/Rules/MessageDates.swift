package import MartletWire

/// The dates and the age that a response tells of itself (RFC 9111 §4.2, §5.1, §5.3; RFC 9110 §6.6.1, §8.8.2).
package struct MessageDates: Equatable, Sendable {
    /// `Expires`.
    package enum Expiry: Equatable, Sendable {
        /// No such field.
        case none
        /// A field that is no date (`0`, `-1`), or several that differ: expired already (RFC 9111 §5.3).
        case past
        /// The moment it expires, in seconds since 1970.
        case at(Int64)
    }

    /// `Date`, in seconds since 1970; the moment it was received where it has none, or none that can be read.
    package let date: Int64
    /// Whether the message had a `Date` that can be read.
    package let hasDate: Bool
    /// `Expires`.
    package let expiry: Expiry
    /// `Last-Modified`, in seconds since 1970; nil where it has none, or none that can be read.
    package let lastModified: Int64?
    /// `Age` in seconds, 0…2^31: of several the first; 0 where it has none, or one that is no number (RFC 9111 §5.1).
    package let age: Int64

    /// Reads the fields of a response.
    ///
    /// - Parameters:
    ///   - fields: its fields.
    ///   - received: when it came. Years of two digits are reckoned from it.
    package init(_ fields: FieldBlock, received: WallTime) {
        let now = HTTPDate(secondsSinceEpoch: received.seconds)
        let date = MessageDates.single("Date", in: fields, now: now)
        hasDate = date != nil
        self.date = date ?? received.seconds
        lastModified = MessageDates.single("Last-Modified", in: fields, now: now)
        if !fields.contains("Expires") {
            expiry = .none
        } else {
            expiry = MessageDates.single("Expires", in: fields, now: now).map(Expiry.at) ?? .past
        }
        age = MessageDates.age(fields)
    }

    /// The date of a field that is there once, or several times with the same value.
    static func single(_ name: String, in fields: FieldBlock, now: HTTPDate) -> Int64? {
        let values = fields.rawValues(of: name)
        guard let first = values.first, first.count <= 64, values.dropFirst().allSatisfy({ $0 == first })
        else {
            return nil
        }
        return HTTPDate(ByteText.string(first), now: now, ignoresCase: true)?.secondsSinceEpoch
    }

    private static func age(_ fields: FieldBlock) -> Int64 {
        guard let index = fields.firstIndex(of: "Age") else { return 0 }
        var list = ElementList(fields.value(at: index))
        return list.next().flatMap(DeltaSeconds.value) ?? 0
    }
}
