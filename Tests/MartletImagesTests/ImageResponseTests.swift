import MartletCore
import MartletImages
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Image responses")
struct ImageResponseTests {
    private static func origin(
        _ bytes: [UInt8], type: String, _ run: (HTTPSession, String) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(headers: ["Content-Type": type], body: .bytes(bytes))
        } run: { origin in
            try await run(HTTPSession(configuration: .ephemeral.patient(total: .seconds(600))), origin.url())
        }
    }

    private static func decoded<Decoder: ResponseDecoder>(
        _ exchange: HTTPExchange, using decoder: Decoder
    ) throws -> Decoder.Output {
        try decoder.decode(exchange)
    }

    @Test("A response reports the format and size of its image")
    func exchange() async throws {
        let bytes = ImageFiles.jpeg(
            640, 480, before: ImageFiles.exifSegment(ImageFiles.exif(6, isBig: true)))
        try await Self.origin(bytes, type: "image/jpeg") { session, url in
            let exchange = try await session.get(url)
            let info = try exchange.imageInfo()
            #expect(info.format == .jpeg)
            #expect(info.displaySize == ImageSize(width: 480, height: 640))
            #expect(try Self.decoded(exchange, using: .imageInfo) == info)
            #expect(ImageInfoResponseDecoder().acceptableContentTypes.contains("image/jpeg"))
        }
    }

    @Test("The size of an image is known before its body is complete")
    func stream() async throws {
        let bytes = ImageFiles.png(
            3, 2, behind: ImageFiles.chunk("tEXt", [UInt8](repeating: 65, count: 8 << 20)))
        try await Self.origin(bytes, type: "image/png") { session, url in
            let info = try await session.stream(try HTTPRequest(method: .get, url: url)) { _, body in
                try await body.imageInfo()
            }
            #expect(info.size == ImageSize(width: 3, height: 2))
            #expect(info.frameCount == 1)
        }
    }

    @Test("The error for a body that is not an image has its position")
    func noImage() async throws {
        try await Self.origin(Array("<html>".utf8), type: "image/png") { session, url in
            let exchange = try await session.get(url)
            let error = #expect(throws: ImageError.self) { try exchange.imageInfo() }
            #expect(error?.code == .unknownFormat)
        }
    }
}
