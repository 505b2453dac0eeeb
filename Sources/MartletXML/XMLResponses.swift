public import MartletCore
import MartletStreams

/// Decodes a response to an ``XMLTree``. Use it as `.xml`.
public struct XMLResponseDecoder: ResponseDecoder {
    /// The limits of the document.
    public var limits: XMLLimits
    /// The treatment of a document type.
    public var doctype: XMLDoctypePolicy

    /// Creates a decoder.
    public init(limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) {
        (self.limits, self.doctype) = (limits, doctype)
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
        try XMLTree(exchange.body, charset: exchange.contentType?.charset, limits: limits, doctype: doctype)
    }
}

extension ResponseDecoder where Self == XMLResponseDecoder {
    /// An XML document, with the default limits.
    public static var xml: XMLResponseDecoder { XMLResponseDecoder() }

    /// An XML document.
    public static func xml(limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) -> XMLResponseDecoder {
        XMLResponseDecoder(limits: limits, doctype: doctype)
    }
}

extension HTTPExchange {
    /// Reads the body as an XML document if the status is 2xx.
    ///
    /// The encoding is that of the byte order mark, else the `charset` of `Content-Type`, else the one that the
    /// document declares, else UTF-8 (RFC 7303 §3.2).
    /// - Throws: An `HTTPError` with the code `.unacceptableStatus` that carries this exchange; an ``XMLError``.
    public func xml(limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) throws -> XMLTree {
        try XMLResponseDecoder(limits: limits, doctype: doctype).decode(validated())
    }
}

extension ResponseBody {
    /// The events of an XML body as they arrive. The body is read no faster than the events are consumed.
    ///
    /// Neither status nor content type is checked. The memory depends on the largest value, not on the body's length.
    public struct XMLEvents: AsyncSequence, Sendable {
        /// The type of the elements.
        public typealias Element = XMLEvent

        fileprivate let body: ResponseBody
        fileprivate let makeParser: @Sendable () -> XMLEventParser

        /// An iterator over the events.
        public struct Iterator: AsyncIteratorProtocol {
            private var body: ResponseBody.Iterator
            private let parser: Parser
            private var isEnded = false

            /// Iterators can be copied and parsers cannot. Copies of an iterator continue where the last one stopped.
            private final class Parser {
                var value: XMLEventParser
                init(_ value: consuming XMLEventParser) { self.value = value }
            }

            fileprivate init(_ events: XMLEvents) {
                body = events.body.makeAsyncIterator()
                parser = Parser(events.makeParser())
            }

            /// The next event; `nil` at the end of the document.
            ///
            /// If the task is cancelled, it throws `CancellationError` immediately, and the connection is closed.
            /// - Throws: An ``XMLError``, after which the body is not read further; an `HTTPError` of the body.
            public mutating func next() async throws -> XMLEvent? {
                while true {
                    if let event = try parser.value.next() { return event }
                    if isEnded { return nil }
                    if let piece = try await body.next() {
                        parser.value.feed(piece)
                    } else {
                        isEnded = true
                        parser.value.finish()
                    }
                }
            }

            /// The next event; `nil` at the end of the document.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> XMLEvent? {
                try await next()
            }
        }

        /// Creates an iterator over the rest of the body.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    /// The events of an XML body, with the default limits. The encoding is determined by the body only.
    public var xmlEvents: XMLEvents { xmlEvents() }

    /// The events of an XML body.
    /// - Parameters:
    ///   - response: The head of the response: the `charset` of its `Content-Type` takes precedence over the document's
    ///     own declaration (RFC 7303 §3.2). Without it, the body alone determines the encoding.
    ///   - limits: The limits of depth, sizes and counts.
    ///   - doctype: The treatment of a document type; by default it is skipped.
    public func xmlEvents(
        of response: (any HTTPResponseHead)? = nil, limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore
    ) -> XMLEvents {
        let charset = response?.contentType?.charset
        return XMLEvents(body: self) { XMLEventParser(charset: charset, limits: limits, doctype: doctype) }
    }
}
