import MartletWire

/// The media types that are taken, as an `Accept` field lists them (RFC 9110 §12.5.1).
package struct MediaRangeList: Hashable, Sendable {
    /// The ranges, in the order they came. Members that are no ranges are left out.
    package let ranges: [MediaRange]

    /// The ranges of field values, each of which may hold several. Takes time linear in them.
    package init(_ fieldValues: [String]) {
        ranges = fieldValues.flatMap { value in
            ElementList(Array(value.utf8)[...]).compactMap {
                MediaRange(String(decoding: $0, as: UTF8.self))
            }
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
