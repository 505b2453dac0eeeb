import MartletContent

extension HTTPExchange {
    /// A name for a file of the body: what `Content-Disposition` proposes, else the last segment of the URL's path, made
    /// safe: one component, not hidden, without control characters, of at most 255 bytes. `nil` when there is none.
    public var suggestedFilename: String? {
        SuggestedFilename.of(
            contentDisposition: storage.head.fields.firstValue(of: "content-disposition"), url: url)
    }
}
