import Martlet
import MartletTesting
import MartletUploads
import Testing

@Suite("Reverse proxies: nginx and Apache")
struct ReverseProxyTests {
    @Test(
        "An upload that is interrupted several times resumes through a proxy, without sending acknowledged bytes again",
        arguments: ReverseProxy.Program.allCases, [UploadProtocol.ietf, .tus])
    func uploads(program: ReverseProxy.Program, given: UploadProtocol) async throws {
        // nginx before 1.29 does not pass on interim responses.
        let store = ResumableUploadStore(sendsInterimResponses: program == .apache2)
        try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
            try await ReverseProxy.withServer(program, before: origin.port) { proxy in
                let file = proxy.directory.appending("source.bin")
                try await LargeFile.write(4 << 20, to: file)
                for _ in 0..<2 { store.inject(.cut(afterBytes: 1_000_000), into: .patch) }
                store.inject(.loseResponse, into: .patch)
                let retry = UploadRetry(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(2))
                let result = try await HTTPSession.plain().uploadResumably(
                    file, to: proxy.url(proxy.port, "/files"), options: UploadOptions(protocol: given, retry: retry))
                #expect(result.byteCount == 4 << 20 && result.isResponseLost)
                #expect(store.completed.map(\.bytes) == [OutputFile.bytes(of: file)])
                #expect(store.uploads.count == 1)
                #expect(store.receivedByteCount == 4 << 20)
            }
        }
    }

    @Test("Apache decodes a request body that was compressed as it was sent")
    func compressedRequest() async throws {
        let text = (0..<20_000).map { "\($0 &* 2_654_435_761 % 1_000_003)" }.joined(separator: ",")
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectBody()
            return .text("\(body == Array(text.utf8))")
        } run: { origin in
            try await ReverseProxy.withServer(.apache2, before: origin.port) { proxy in
                let response = try await HTTPSession.plain().post(
                    proxy.url(proxy.port, "/"), body: .text(text).compressed(.gzip))
                #expect(response.text == "true")
                #expect(response.metrics.sentByteCount < UInt64(text.utf8.count) * 2 / 3)
            }
        }
    }

    @Test("Early hints of an origin arrive through Apache before the response")
    func earlyHints() async throws {
        try await TestOrigin.withOrigin { request in
            try await request.send(InterimResponse(103, headers: ["Link": "</a.css>; rel=preload"]))
            return .text("page")
        } run: { origin in
            try await ReverseProxy.withServer(.apache2, before: origin.port) { proxy in
                let page = try await HTTPSession.plain().get(proxy.url(proxy.port, "/"))
                #expect(page.text == "page")
                #expect(page.interimResponses.map(\.status.code) == [103])
                #expect(page.interimResponses.first?.headerFields["Link"] == "</a.css>; rel=preload")
            }
        }
    }
}
