/// A response with an unread body and with its heads exactly as received, for programs that print them.
package struct DetailedResponse: Sendable {
    let answer: StreamedResponse
    /// The body, as it arrives.
    package let body: ResponseBody

    /// The final head, exactly as received.
    package var head: ResponseHead { answer.head }
    /// The interim heads before the final one, exactly as received.
    package var interim: [ResponseHead] { answer.interim }
    /// The trailers of a chunked body; available after the body was read to its end.
    package var trailers: FieldBlock? { answer.trailers }
    /// The metrics so far.
    package var metrics: HTTPMetrics { answer.metrics }
    /// The URL of the response, without user info.
    package var url: HTTPURL { answer.call.url }
    /// The method of the last request, which redirects may have changed.
    package var method: HTTPRequest.Method { answer.call.method }
    /// The source of the response.
    package var source: HTTPExchange.Source { answer.source }
    /// The action of the cache so far, as in ``OpenResponse/cacheStatus``.
    package var cacheStatus: String? { answer.provenance?.cacheStatus }
    /// Returns the exchange for an error, with the first 64 KiB of its body at most, received within two seconds.
    package func withBeginning() async -> HTTPExchange {
        answer.exchange(
            with: await body.reader.beginning(
                upTo: ResponseValidator.beginningByteCount, within: ResponseValidator.beginningTimeout))
    }

    /// Whether the cache created this 504, because a request with `only-if-cached` found no usable stored response (RFC
    /// 9111 §5.2.1.7). `false` for a stored response with the status 504.
    package var isUnsatisfied: Bool { answer.provenance?.isUnsatisfied ?? false }

    /// Returns the exchange so far, with the part of the body that was collected.
    package func exchange(with body: [UInt8]) -> HTTPExchange { answer.exchange(with: body) }
}

extension HTTPSession {
    /// Streams a response with all its details. Dot segments that `url` contains are sent.
    ///
    /// - Throws: An ``HTTPError``; `CancellationError`; any error of the closure, unchanged.
    package nonisolated func streamDetailed<Result>(
        _ request: HTTPRequest, to url: HTTPURL, body: HTTPBody = .none, options: RequestOptions = RequestOptions(),
        control: TransferControl = TransferControl(), kind: HTTPTask.Kind = .stream,
        _ handle: (DetailedResponse) async throws -> Result
    ) async throws -> Result {
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        return try await run(call, control, kind: kind) { answer in
            let reader = BodyReader(answer, control: control, byteLimit: options.bodyLimit?.bytes)
            let body = ResponseBody(reader: reader)
            return try await UserCode.handle(control, core) {
                try await handle(DetailedResponse(answer: answer, body: body))
            }
        }
    }
}

extension TransferControl {
    /// The number of body bytes received, from the network or the cache, before content codings are decoded.
    package var downloadedByteCount: UInt64 { download?.value.completedByteCount ?? 0 }
    /// The number of bytes sent of the request's body.
    package var uploadedByteCount: UInt64 { upload?.value.completedByteCount ?? 0 }
}
