import MartletContent

extension FuzzEntry {
    /// The lines of `Content-Digest` or `Repr-Digest`.
    ///
    /// A digest has the length of its function and survives writing and reading. A field followed by a member that
    /// replaces its digests has that digest, or is invalid as a whole.
    static let digestField = FuzzEntry("digest-field") { (bytes) throws(FuzzFinding) in
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        let field = DigestField(lines)
        for (algorithm, digest) in field.digests {
            try require(digest.count == algorithm.byteCount, "\(algorithm) has \(digest.count) bytes")
            let member = Array(DigestField.member(algorithm, digest).utf8)
            try require(
                DigestField([member[...]]).digests == [algorithm: digest], "\(algorithm) does not survive writing")
            try require(DigestField(lines + [member[...]]) == field, "repeating \(algorithm) changes the field")
        }
        let zeros = [UInt8](repeating: 0, count: DigestAlgorithm.sha256.byteCount)
        let last = Array(DigestField.member(.sha256, zeros).utf8)
        let replaced = DigestField(lines + [last[...]]).digests
        try require(
            replaced.isEmpty || replaced[.sha256] == zeros, "the last member does not count: \(replaced)")
    }
}
