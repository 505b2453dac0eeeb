public import MartletClient

extension HTTPExchange {
    /// Reads the body as an XML document, provided that the status is 2xx.
    ///
    /// The encoding is that of the byte order mark, else of the `charset` of `Content-Type`, else the one that the document
    /// declares, else UTF-8 (RFC 7303 §3.2).
    ///
    /// - Parameters:
    ///   - limits: What the document may have at most.
    ///   - doctype: What becomes of a document type.
    /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``XMLError``.
    public func xml(limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip) throws -> XMLTree {
        try validated().xmlTree(limits, doctype)
    }

    /// The body as a document, whatever the status is.
    func xmlTree(_ limits: XMLLimits, _ doctype: XMLDoctypeRule) throws(XMLError) -> XMLTree {
        let charset = response.headerFields[.contentType].flatMap { MediaType($0)?.charset }
        return try XMLTree(body, charset: charset, limits: limits, doctype: doctype)
    }
}
