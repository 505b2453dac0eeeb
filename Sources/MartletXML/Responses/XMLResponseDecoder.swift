public import MartletClient

/// Makes an ``XMLTree`` of an answer: `.xml` where a decoder is asked for.
public struct XMLResponseDecoder: ResponseDecoder {
    /// What a document may have at most.
    public var limits: XMLLimits
    /// What becomes of a document type.
    public var doctype: XMLDoctypeRule

    /// A decoder.
    public init(limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip) {
        self.limits = limits
        self.doctype = doctype
    }

    /// `application/xml`, `text/xml`, and the types that end with `+xml` (RFC 7303 §4).
    public var acceptableContentTypes: [String] {
        [
            "application/xml", "text/xml", "application/*+xml", "image/*+xml", "text/*+xml", "model/*+xml",
            "message/*+xml",
        ]
    }

    /// Reads the body as a document.
    /// - Throws: An ``XMLError``.
    public func decode(_ exchange: HTTPExchange) throws -> XMLTree {
        try exchange.xmlTree(limits, doctype)
    }
}

extension ResponseDecoder where Self == XMLResponseDecoder {
    /// An XML document, within the default limits.
    public static var xml: XMLResponseDecoder { XMLResponseDecoder() }

    /// An XML document.
    public static func xml(
        limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip
    ) -> XMLResponseDecoder {
        XMLResponseDecoder(limits: limits, doctype: doctype)
    }
}
