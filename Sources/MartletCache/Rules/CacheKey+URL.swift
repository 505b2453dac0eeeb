extension CacheKey {
    /// The key of an absolute URL in any spelling: without fragment and user info, scheme and host in lower case, without
    /// the port that goes without saying, and with a path.
    ///
    /// Paths and queries are compared as they are: `%7E` and `~` make two keys, which costs a request and is never
    /// wrong.
    ///
    /// - Parameters:
    ///   - url: an absolute URL of http or https.
    ///   - partition: whose response it is; empty for everybody's.
    package init?(of url: String, partition: String = "") {
        guard let parts = KeyURL(url) else { return nil }
        self.init(url: parts.origin + parts.target, partition: partition)
    }

    /// Scheme, host and port of the URL, in their normal form; nil where it is none of http or https.
    package var origin: String? { KeyURL(url)?.origin }
}
