package import MartletWire

/// Which stored responses a 304 is about (RFC 9111 §4.3.4).
package enum FresheningRule {
    /// The stored responses, by index, the one that answers first; empty where it is about none that is known.
    ///
    /// A strong tag is about all that have it. A weak one, or a date, is about the newest that has it. A 304 that names
    /// nothing is about what was asked, if that was a single one; servers that leave out the tag of a 304 are common.
    ///
    /// - Parameters:
    ///   - response: the head of the 304.
    ///   - variants: what is stored.
    ///   - offered: those that the request asked about, by index, the selected one first.
    package static func selected(
        by response: ResponseHead, among variants: [StoredVariant], offered: [Int]
    ) -> [Int] {
        let candidates = variants.indices.filter { (200..<300).contains(variants[$0].head.status) }
        if let tag = EntityTag(of: response.fields) {
            let strong = candidates.filter { variants[$0].facts.entityTag?.matchesStrongly(tag) ?? false }
            if !strong.isEmpty { return ordered(strong, variants, offered) }
            let weak = candidates.filter { variants[$0].facts.entityTag?.matchesWeakly(tag) ?? false }
            // A strong tag is about no weakly named response, unless that is the only one that was asked about.
            if tag.isWeak || weak == offered { return Array(ordered(weak, variants, offered).prefix(1)) }
            return []
        }
        // A tag that cannot be read names nothing, where what was asked about has none, or one such, as well.
        if response.fields.contains("ETag"), offered.contains(where: { variants[$0].facts.entityTag != nil })
        {
            return []
        }
        if response.fields.contains("Last-Modified") {
            let now = HTTPDate(secondsSinceEpoch: 0)
            guard let date = MessageDates.single("Last-Modified", in: response.fields, now: now) else {
                return []
            }
            let dated = candidates.filter { variants[$0].facts.dates.lastModified == date }
            return Array(ordered(dated, variants, offered).prefix(1))
        }
        return offered.count == 1 ? offered.filter(candidates.contains) : []
    }

    /// Those that were asked about first, in their order; then the newest.
    private static func ordered(_ found: [Int], _ variants: [StoredVariant], _ offered: [Int]) -> [Int] {
        offered.filter(found.contains)
            + VariantRule.newestFirst(found.filter { !offered.contains($0) }, variants)
    }
}
