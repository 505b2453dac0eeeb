import MartletContent
package import MartletWire

/// The representation of a file (RFC 9110 §3.2) that bytes belong to. Bytes of two representations are never mixed.
package struct Representation: Hashable, Sendable {
    /// The entity tag; `nil` if the server sent none.
    package var entityTag: EntityTag?
    /// `Last-Modified` as received; `nil` without a valid one.
    package var lastModified: String?
    /// Whether ``lastModified`` is a strong validator: at least 60 s older than the response (RFC 9110 §8.8.2.2).
    package var isLastModifiedStrong = false
    /// The content codings of the bytes; `nil` for none.
    package var coding: String?

    /// Creates a representation without validators.
    init() {}

    /// Creates the representation that the fields of a response describe.
    package init(_ fields: FieldBlock) { self = Representation.found(in: fields).representation }

    /// Returns the representation that the fields of a response describe, and the time in ``lastModified``, in seconds
    /// since 1970.
    static func found(in fields: FieldBlock) -> (representation: Representation, modified: Int64?) {
        var found = Representation()
        found.entityTag = EntityTag(of: fields)
        var time: Int64?
        let dates = fields.values(of: "Last-Modified")
        if let first = dates.first, dates.allSatisfy({ $0 == first }), let modified = HTTPDate(first) {
            (found.lastModified, time) = (first, modified.secondsSinceEpoch)
            let date = fields.firstValue(of: "Date").flatMap { HTTPDate($0) }
            found.isLastModifiedStrong = date.map { $0.secondsSinceEpoch - 60 >= modified.secondsSinceEpoch } ?? false
        }
        let values = fields.values(of: "Content-Encoding")
        guard !values.isEmpty else { return (found, time) }
        let codings = values.joined(separator: ",").lowercased()
        let isCoded = codings.split(separator: ",").contains { coding in
            let coding = coding.filter { $0 != " " && $0 != "\t" }
            return !coding.isEmpty && coding != "identity"
        }
        found.coding = isCoded ? codings : nil
        return (found, time)
    }

    /// The value of `If-Range`: a strong entity tag, else a strong date; never a weak tag (RFC 9110 §13.1.5).
    package var condition: String? {
        if let entityTag, !entityTag.isWeak { return ByteText.latin1(entityTag.bytes[...]) }
        return isLastModifiedStrong ? lastModified : nil
    }

    /// Whether there is such a condition.
    package var hasCondition: Bool { condition != nil }

    /// Whether a response certainly has another representation.
    package func differs(from other: Representation) -> Bool {
        if coding != other.coding { return true }
        if let mine = entityTag, let its = other.entityTag {
            if mine.isWeak && its.isWeak { return !mine.matchesWeakly(its) }
            return mine != its
        }
        if let mine = lastModified, let its = other.lastModified { return mine != its }
        return false
    }

    /// Whether both have the same kind of validator, and the validators or the content codings differ.
    package func contradictsValidator(of other: Representation) -> Bool {
        let isComparable =
            entityTag != nil && other.entityTag != nil || lastModified != nil && other.lastModified != nil
        return isComparable && differs(from: other)
    }

    /// Whether a response certainly has the same representation, byte for byte.
    package func isProven(by other: Representation) -> Bool {
        guard coding == other.coding else { return false }
        if let mine = entityTag, let its = other.entityTag { return mine.matchesStrongly(its) }
        guard entityTag == nil, other.entityTag == nil else { return false }
        return isLastModifiedStrong && lastModified == other.lastModified
    }
}

/// Signed URLs of file stores, which are valid for a limited time: later the same file has another URL. Files are
/// distinguished by the URL without its signature, whose parameters are known for the common stores only. An entity tag
/// does not suffice, because two files may have the same tag (RFC 9110 §8.8.3).
enum SignedURL {
    /// The prefixes of the parameters of Amazon S3 (version 4) and Google Cloud Storage.
    private static let prefixes = ["x-amz-", "x-goog-"]
    /// The parameters of Akamai, and the signers of S3 and Google Cloud Storage (version 2), CloudFront, Alibaba OSS.
    private static let names: Set<String> = signers.union(["security-token", "hdnea", "hdntl", "hdnts"])
    private static let signers: Set<String> = ["awsaccesskeyid", "key-pair-id", "googleaccessid", "ossaccesskeyid"]
    /// The other parameters of these signers. The names are common words: they count only together with a signer.
    private static let signedNames: Set<String> = ["signature", "expires", "policy"]
    /// The parameters of Azure Storage. The names are short: they count only together with `sv` and `sig`.
    private static let azureNames: Set<String> = [
        "sv", "ss", "srt", "sr", "st", "se", "sp", "sip", "spr", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv",
        "saoid", "suoid", "scid", "sdd", "ses",
    ]

    /// Returns a URL without its signature. The order of the other parameters does not change.
    static func unsigned(_ url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let parameters = url[url.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let given = parameters.map { $0.prefix { $0 != "=" }.lowercased() }
        let isAzure = given.contains("sv") && given.contains("sig")
        let hasSigner = given.contains { signers.contains($0) }
        let kept = zip(parameters, given).filter { _, name in
            !(names.contains(name) || prefixes.contains { name.hasPrefix($0) } || isAzure && azureNames.contains(name)
                || hasSigner && signedNames.contains(name))
        }
        if kept.isEmpty { return String(url[..<mark]) }
        return url[..<mark] + "?" + kept.map { String($0.0) }.joined(separator: "&")
    }
}
