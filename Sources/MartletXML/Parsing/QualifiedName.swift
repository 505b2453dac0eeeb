/// A name as it is written, taken apart at its colon (Namespaces in XML 1.0 §4).
struct QualifiedName {
    /// What stands before the colon; nil when there is none.
    let prefix: ArraySlice<UInt8>?
    /// What stands behind it, or all.
    let local: ArraySlice<UInt8>

    /// Takes a name of XML 1.0 apart.
    init(_ written: [UInt8], at position: XMLPosition) throws(XMLError) {
        guard let colon = written.firstIndex(of: 0x3A) else {
            prefix = nil
            local = written[...]
            return
        }
        let (before, behind) = (written[..<colon], written[(colon + 1)...])
        let first = String(decoding: behind, as: UTF8.self).unicodeScalars.first
        guard !before.isEmpty, let first, XMLCharacter.isNameStart(first.value), !behind.contains(0x3A) else {
            throw XMLError(
                .invalidName, at: position,
                "\(String(decoding: written, as: UTF8.self)) is no name with a prefix")
        }
        prefix = before
        local = behind
    }
}
