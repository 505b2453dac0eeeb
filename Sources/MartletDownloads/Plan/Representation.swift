import MartletContent
package import MartletWire

/// Which state of a file bytes belong to: those of two states are never mixed.
package struct Representation: Hashable, Sendable {
    /// Its entity tag; nil where the server gave none.
    package var entityTag: EntityTag?
    /// `Last-Modified` as it came; nil where the server gave none that can be read.
    package var lastModified: String?
    /// Whether that date is so much older than the answer that the file cannot have changed within its second: by 60 s or
    /// more (RFC 9110 §8.8.2.2).
    package var isLastModifiedStrong = false
    /// The content codings that its bytes are in; nil for none.
    package var coding: String?

    /// What is known of bytes of which nothing is said.
    init() {}

    /// What a response says of its bytes.
    package init(_ fields: FieldBlock) {
        entityTag = EntityTag(of: fields)
        let dates = fields.values(of: "Last-Modified")
        if let first = dates.first, dates.allSatisfy({ $0 == first }), let modified = HTTPDate(first) {
            lastModified = first
            let date = fields.firstValue(of: "Date").flatMap { HTTPDate($0) }
            isLastModifiedStrong =
                date.map { $0.secondsSinceEpoch - 60 >= modified.secondsSinceEpoch } ?? false
        }
        let codings = fields.values(of: "Content-Encoding").joined(separator: ",").lowercased()
        let isCoded = codings.split(separator: ",").contains { coding in
            let coding = coding.filter { $0 != " " && $0 != "\t" }
            return !coding.isEmpty && coding != "identity"
        }
        coding = isCoded ? codings : nil
    }

    /// What `If-Range` says to get a part of this state only: a strong entity tag, else a strong date; nil where there is
    /// neither. A weak tag is never it (RFC 9110 §13.1.5).
    package var condition: String? {
        if let entityTag, !entityTag.isWeak { return ByteText.latin1(entityTag.bytes[...]) }
        return isLastModifiedStrong ? lastModified : nil
    }

    /// Whether there is such a condition.
    package var hasCondition: Bool {
        if let entityTag, !entityTag.isWeak { return true }
        return isLastModifiedStrong && lastModified != nil
    }

    /// Whether an answer is for certain of another state.
    package func differs(from other: Representation) -> Bool {
        if coding != other.coding { return true }
        if let mine = entityTag, let its = other.entityTag {
            if mine.isWeak && its.isWeak { return !mine.matchesWeakly(its) }
            return mine != its
        }
        if let mine = lastModified, let its = other.lastModified { return mine != its }
        return false
    }

    /// Whether both have a validator of one kind, and these differ or the codings do.
    package func contradictsValidator(of other: Representation) -> Bool {
        let isComparable =
            entityTag != nil && other.entityTag != nil || lastModified != nil && other.lastModified != nil
        return isComparable && differs(from: other)
    }

    /// Whether an answer is for certain of the same state, byte for byte.
    package func isProven(by other: Representation) -> Bool {
        guard coding == other.coding else { return false }
        if let mine = entityTag, let its = other.entityTag { return mine.matchesStrongly(its) }
        guard entityTag == nil, other.entityTag == nil else { return false }
        return isLastModifiedStrong && lastModified == other.lastModified
    }
}

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
        "skv", "saoid", "suoid", "scid", "sdd", "ses",
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
