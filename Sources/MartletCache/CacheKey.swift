/// What a stored response is found by: the URL, and whose it is.
///
/// Responses to GET alone are stored, so the method is no part of it. Variants of one URL (RFC 9111 §4.1) share a key.
package struct CacheKey: Hashable, Sendable {
    /// The URL as it was asked for, without fragment and user info, in its normal form.
    package var url: String
    /// Whose response it is: empty for everybody's, else a digest of the credential or a name that the caller chose. Never
    /// a secret itself, since it is written to disk.
    package var partition: String

    /// The key of a URL.
    package init(url: String, partition: String = "") {
        self.url = url
        self.partition = partition
    }
}
