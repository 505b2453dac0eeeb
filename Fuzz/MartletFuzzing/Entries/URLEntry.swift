import MartletURL
import MartletCore

extension FuzzEntry {
    /// URLs, and after an LF a reference that is resolved against the URL.
    ///
    /// An accepted URL survives formatting and parsing. It is within the length limit, and the encoder writes its host
    /// and target unchanged. An error's offset is in the text.
    static let url = FuzzEntry("url") { (bytes) throws(FuzzFinding) in
        let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        let asIs = try URLRules.parsed(texts[0], pathAsIs: true)
        try asIs.map(URLRules.init)?.check(pathAsIs: true)
        guard let url = try URLRules.parsed(texts[0], pathAsIs: false) else { return }
        try URLRules(url).check(pathAsIs: false)
        try require(asIs?.origin == url.origin, "the origin depends on dot segments")
        if texts.count > 1 { try checkReference(texts[1], at: url) }
    }

    private static func checkReference(_ reference: String, at base: HTTPURL) throws(FuzzFinding) {
        let resolved: HTTPURL
        do throws(HTTPURL.ParseError) {
            resolved = try base.resolving(reference)
        } catch {
            return try URLRules.check(error, in: reference)
        }
        try URLRules(resolved).check(pathAsIs: false)
        if let absolute = try URLRules.parsed(reference, pathAsIs: false) {
            try require(resolved == absolute, "\(reference) at \(base) is \(resolved)")
        }
        let begin = reference.utf8.prefix(2)
        let namesHost = begin.elementsEqual("//".utf8) || reference.utf8.prefix { $0 != 0x2F }.contains(0x3A)
        try require(
            namesHost || resolved.origin == base.origin, "\(reference) leads from \(base) to \(resolved)")
    }
}
