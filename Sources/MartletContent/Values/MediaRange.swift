import MartletWire

/// A range of media types with its weight, a member of an `Accept` field (RFC 9110 §12.5.1).
package struct MediaRange: Hashable, Sendable {
    /// The type in lower case, or `*`.
    package let type: String
    /// The subtype in lower case, `*`, or for example `*+json` for all subtypes with that suffix (RFC 6838 §4.2.8). The
    /// suffix form is an extension of Martlet, for ranges written in code.
    package let subtype: String
    /// The parameters except `q`.
    package let parameters: [MediaType.Parameter]
    /// The weight in thousandths, 0–1000; 0 excludes the range.
    package let weight: Int

    /// Parses a range; `nil` if it is invalid. A single `*`, which old clients send, means `*/*`.
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

    /// The specificity; the most specific matching range is used.
    package var specificity: Int {
        if type == "*" { return 0 }
        if subtype == "*" { return 1 }
        return subtype.hasPrefix("*+") ? 2 : 3 + parameters.count
    }

    /// Whether the range contains a type. The type must have each parameter of the range, except that `charset` may be
    /// missing, because servers omit it if there is only one choice. The case of a `charset` is ignored.
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

    /// Returns the weight in thousandths. An invalid one counts as 1000, so that the range is not lost.
    private static func weight(_ text: String) -> Int {
        let bytes = Array(text.utf8)
        guard let whole = bytes.first.flatMap(ByteClass.digit), whole <= 1, bytes.count <= 5,
            bytes.count < 2 || bytes[1] == UInt8(ascii: "."), bytes.dropFirst(2).allSatisfy(ByteClass.isDigit)
        else { return 1000 }
        let digits = zip(bytes.dropFirst(2), [100, 10, 1])
        return min(1000, digits.reduce(whole * 1000) { $0 + Int($1.0 - UInt8(ascii: "0")) * $1.1 })
    }
}

/// The accepted media types, as an `Accept` field lists them (RFC 9110 §12.5.1).
package struct MediaRangeList: Hashable, Sendable {
    /// The ranges in the order received, without invalid members.
    package let ranges: [MediaRange]

    /// Parses the ranges of field values, each with one or several ranges, in linear time.
    package init(_ fieldValues: [String]) {
        ranges = fieldValues.flatMap { value in
            ElementList(Array(value.utf8)[...]).compactMap { MediaRange(String(decoding: $0, as: UTF8.self)) }
        }
    }

    /// Returns the weight of a type in thousandths: that of the most specific matching range, or the highest if several
    /// match equally; 0 if none matches.
    package func weight(of type: MediaType) -> Int {
        let matches = ranges.lazy.filter { $0.contains(type) }
        return matches.max { ($0.specificity, $0.weight) < ($1.specificity, $1.weight) }?.weight ?? 0
    }

    /// Whether a type is accepted.
    package func accepts(_ type: MediaType) -> Bool { weight(of: type) > 0 }

    /// Whether a response without a content type is accepted: only if the list has `*/*` with a weight above 0.
    package var acceptsUntyped: Bool { ranges.contains { $0.type == "*" && $0.weight > 0 } }
}
