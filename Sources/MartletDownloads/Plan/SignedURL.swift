/// URLs that are good for a while, as stores of files give them: the same file has another one later.
///
/// What tells files apart is all of a URL but what signs it. Which parameters of a query do that is known of the common stores
/// alone; any other may name the file, and two files may have one entity tag, which is the server's word about one URL
/// (RFC 9110 §8.8.3).
enum SignedURL {
    /// Amazon S3 (version 4), Google Cloud Storage: what their parameters begin with.
    private static let prefixes = ["x-amz-", "x-goog-"]
    /// Akamai, and who signs for S3 (version 2), CloudFront, Google Cloud Storage (version 2) and Alibaba OSS.
    private static let names: Set<String> = signers.union(["security-token", "hdnea", "hdntl", "hdnts"])
    private static let signers: Set<String> = [
        "awsaccesskeyid", "key-pair-id", "googleaccessid", "ossaccesskeyid",
    ]
    /// What these have besides. The words are common: they count where one of the signers is among them.
    private static let signedNames: Set<String> = ["signature", "expires", "policy"]
    /// Azure Storage, whose names are short: they count where `sv` and `sig` are among them.
    private static let azureNames: Set<String> = [
        "sv", "ss", "srt", "sr", "st", "se", "sp", "sip", "spr", "sig", "skoid", "sktid", "skt", "ske", "sks",
        "skv",
        "saoid", "suoid", "scid", "sdd", "ses",
    ]

    /// A URL without what signs it; the other parameters stay as they are, in their order.
    static func unsigned(_ url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let parameters = url[url.index(after: mark)...].split(
            separator: "&", omittingEmptySubsequences: false)
        let given = parameters.map { $0.prefix { $0 != "=" }.lowercased() }
        let isAzure = given.contains("sv") && given.contains("sig")
        let hasSigner = given.contains { signers.contains($0) }
        let kept = zip(parameters, given).filter { _, name in
            !(names.contains(name) || prefixes.contains { name.hasPrefix($0) }
                || isAzure && azureNames.contains(name) || hasSigner && signedNames.contains(name))
        }
        if kept.isEmpty { return String(url[..<mark]) }
        return url[..<mark] + "?" + kept.map { String($0.0) }.joined(separator: "&")
    }
}
