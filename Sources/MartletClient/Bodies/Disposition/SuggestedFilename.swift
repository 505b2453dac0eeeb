/// Which name a response proposes for the file it is saved in.
package enum SuggestedFilename {
    /// The name of `Content-Disposition`, else the last segment of the URL's path, percent-decoded; made safe either way.
    /// `nil` when neither has one.
    /// - Parameters:
    ///   - contentDisposition: The field's value; `nil` when there is none, or it is not to be heeded.
    ///   - url: Where the response came from.
    package static func of(contentDisposition: String?, url: HTTPURL) -> String? {
        if let contentDisposition,
            let name = ContentDisposition(contentDisposition)?.suggestedFilename
        {
            return name
        }
        let segment = url.path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last
        return segment.flatMap { SafeFilename(PercentEncoding.decoded(String(Substring($0))))?.text }
    }
}

extension HTTPExchange {
    /// A name for a file of the body: what `Content-Disposition` proposes, else the last segment of the URL's path, made
    /// safe: one component, not hidden, without control characters, of at most 255 bytes. `nil` when there is none.
    public var suggestedFilename: String? {
        SuggestedFilename.of(
            contentDisposition: storage.head.fields.firstValue(of: "content-disposition"), url: url)
    }
}
