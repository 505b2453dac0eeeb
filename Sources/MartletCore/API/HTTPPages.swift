/// The pages of a list. Each page has a link with the relation `next` to the following one (RFC 8288).
///
/// Pages are requested on demand. A status that is not 2xx is an error, not the end of the list. A link to another
/// origin is an error, because the fields and credentials are for the origin of the first request. Each
/// iterator starts with the first page. One task at a time uses an iterator; cancelling it cancels the request.
public struct HTTPPages: AsyncSequence, Sendable {
    /// The response with a page.
    public typealias Element = HTTPExchange

    private let maximumCount: Int
    private let send: @Sendable (HTTPURL?) async throws -> (HTTPURL, HTTPExchange)

    /// Creates the pages of a list.
    /// - Parameter send: Requests the page of a link, the first page for `nil`, and returns its URL before redirects.
    package init(
        maximumCount: Int, _ send: @escaping @Sendable (_ link: HTTPURL?) async throws -> (HTTPURL, HTTPExchange)
    ) { (self.maximumCount, self.send) = (maximumCount, send) }

    /// An iterator over the pages.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pages: HTTPPages
        private var last: HTTPExchange?
        private var origin: HTTPURL.Origin?
        private var seen: Set<HTTPURL> = []
        private var count = 0
        private var isOver = false

        fileprivate init(_ pages: HTTPPages) { self.pages = pages }

        /// Requests the next page; `nil` after a page without a link to another one, and after an error.
        /// - Throws: An ``HTTPError``: `.linkRejected` for a link to an earlier page, to another origin, or beyond the
        ///   maximum number of pages; `.unacceptableStatus`; the other errors of a call. `CancellationError`.
        public mutating func next() async throws -> HTTPExchange? {
            if isOver { return nil }
            isOver = true
            var next: HTTPURL?
            if let last {
                next = try link(in: last)
                if next == nil { return nil }
            }
            let (url, page) = try await pages.send(next)
            try page.validated()
            origin = origin ?? url.origin
            seen.formUnion([url.withoutFragment, page.url.withoutFragment])
            count += 1
            (last, isOver) = (page, false)
            return page
        }

        /// Requests the next page.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> HTTPExchange? {
            try await next()
        }

        /// Returns the URL of the page after another one; `nil` after the last page.
        private func link(in page: HTTPExchange) throws -> HTTPURL? {
            guard let url = page.link("next")?.withoutUserInfo.withoutFragment else { return nil }
            let reason: String
            if url.origin != origin {
                reason = "is at another origin: request it separately, with credentials for that origin"
            } else if seen.contains(url) {
                reason = "is an earlier page"
            } else if count >= pages.maximumCount {
                reason = "is beyond the maximum number of pages, \(pages.maximumCount)"
            } else {
                return url
            }
            throw page.mapped(
                HTTPError(
                    .linkRejected, phase: .processingResponse, message: "the next page \(url.redacted) \(reason)",
                    wasSent: true, method: .get, url: page.url, exchange: page))
        }
    }

    /// Creates an iterator that starts with the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension HTTPSession {
    /// Returns the pages of a list whose responses have a `Link` field with the relation `next` (RFC 8288).
    ///
    /// ```swift
    /// for try await page in session.pages("https://api.example.com/issues", query: ["per_page": 100]) {
    ///     issues += try page.decode([Issue].self)
    /// }
    /// ```
    /// The parameters are those of ``send(_:query:body:headers:timeout:options:validate:)`` and apply to each page; the
    /// query is that of the first. An invalid URL is reported when the first page is requested.
    /// - Parameter maximumCount: The maximum number of pages, 10,000 by default. A link beyond it is an error.
    public nonisolated func pages(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil,
        maximumCount: Int = 10_000
    ) -> HTTPPages {
        let target = target.httpTarget
        return HTTPPages(maximumCount: maximumCount) { link in
            let (first, fields) = try target.partsOfGET()
            var all = headers
            all.fill(from: fields)
            // A link has the origin of the first URL, whose user info is for that origin.
            let url = link.map {
                HTTPURL(
                    scheme: $0.scheme, userInfo: first.userInfo, host: $0.host, hostKind: $0.hostKind,
                    explicitPort: $0.explicitPort, path: $0.path, query: $0.query, fragment: nil)
            }
            let call = try self.call(
                .get, url ?? first, link == nil ? query : .null, all, .none, timeout, options, validate)
            return (call.url, try await self.collect(call))
        }
    }
}

extension HTTPError.Code {
    /// The next page of a list must not be requested: it is an earlier page, at another origin, or beyond the maximum
    /// number of pages; ``HTTPError/exchange`` is the page with the link.
    public static let linkRejected = HTTPError.Code(rawValue: "linkRejected")
}
