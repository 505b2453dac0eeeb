import MartletWire

/// A range of media types with its weight, as a member of an `Accept` field has it (RFC 9110 §12.5.1).
package struct MediaRange: Hashable, Sendable {
    /// The type in lower case, or `*`.
    package let type: String
    /// The subtype in lower case; `*`; or `*+json`, say, for all subtypes of that suffix (RFC 6838 §4.2.8), which is no
    /// `Accept` field's business but what those who write down types mean.
    package let subtype: String
    /// The parameters but `q`.
    package let parameters: [MediaType.Parameter]
    /// The weight in thousandths, 0–1000; 0 says “not this”.
    package let weight: Int

    /// Parses a range; `nil` when it is none. A `*` alone, which old clients send, is `*/*`.
    package init?(_ text: String) {
        let wildcard = text.drop { $0 == " " || $0 == "\t" }
        let isBare = wildcard.first == "*" && wildcard.dropFirst().first != "/"
        guard let parsed = MediaType(isBare ? "*/*" + wildcard.dropFirst() : text) else { return nil }
        guard parsed.type != "*" || parsed.subtype == "*" else { return nil }
        type = parsed.type
        subtype = parsed.subtype
        parameters = parsed.parameters.filter { $0.name != "q" }
        weight = parsed["q"].map(MediaRange.weight) ?? 1000
    }

    /// How exactly it names what it means: the most specific of the ranges that match counts.
    package var specificity: Int {
        if type == "*" { return 0 }
        if subtype == "*" { return 1 }
        return subtype.hasPrefix("*+") ? 2 : 3 + parameters.count
    }

    /// Whether a type lies in the range.
    ///
    /// Each parameter of the range must be one of the type; but a `charset` only excludes another `charset`, since servers
    /// leave it out where there is one choice, and is compared without regard to case.
    package func contains(_ other: MediaType) -> Bool {
        guard type == "*" || type == other.type else { return false }
        if subtype.hasPrefix("*+") {
            guard other.subtype.hasSuffix(subtype.dropFirst()) else { return false }
        } else if subtype != "*", subtype != other.subtype {
            return false
        }
        return parameters.allSatisfy { parameter in
            guard let value = other[parameter.name] else { return parameter.name == "charset" }
            if parameter.name == "charset" { return value.lowercased() == parameter.value.lowercased() }
            return value == parameter.value
        }
    }

    /// Thousandths; a weight that is none is 1, since the sender meant something by naming the range.
    private static func weight(_ text: String) -> Int {
        let bytes = Array(text.utf8)
        guard let whole = bytes.first, whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1"),
            bytes.count <= 5, bytes.count < 2 || bytes[1] == UInt8(ascii: ".")
        else { return 1000 }
        var weight = Int(whole - UInt8(ascii: "0")) * 1000
        var unit = 100
        for byte in bytes.dropFirst(2) {
            guard case UInt8(ascii: "0")...UInt8(ascii: "9") = byte else { return 1000 }
            weight += Int(byte - UInt8(ascii: "0")) * unit
            unit /= 10
        }
        return min(weight, 1000)
    }
}

/// The media types that are taken, as an `Accept` field lists them (RFC 9110 §12.5.1).
package struct MediaRangeList: Hashable, Sendable {
    /// The ranges, in the order they came. Members that are no ranges are left out.
    package let ranges: [MediaRange]

    /// The ranges of field values, each of which may hold several. Takes time linear in them.
    package init(_ fieldValues: [String]) {
        ranges = fieldValues.flatMap { value in
            ElementList(Array(value.utf8)[...]).compactMap { MediaRange(String(decoding: $0, as: UTF8.self)) }
        }
    }

    /// The weight of a type in thousandths: that of the most specific range it lies in, the highest of several; 0 where it
    /// lies in none.
    package func weight(of type: MediaType) -> Int {
        var found: (specificity: Int, weight: Int)?
        for range in ranges where range.contains(type) {
            let candidate = (specificity: range.specificity, weight: range.weight)
            if found.map({ $0 < candidate }) ?? true { found = candidate }
        }
        return found?.weight ?? 0
    }

    /// Whether a type is taken.
    package func accepts(_ type: MediaType) -> Bool { weight(of: type) > 0 }

    /// Whether what has no type is taken: where anything is.
    package var acceptsUntyped: Bool { ranges.contains { $0.type == "*" && $0.weight > 0 } }
}
