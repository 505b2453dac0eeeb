import Foundation
import Martlet
import MartletTesting
import Testing

@Suite("Digest fields: downloads")
struct DigestDownloadTests {
    private static func response(_ fields: OriginFields) -> OriginResponse {
        .bytes(DigestScene.bytes, headers: fields).with { $0.headers.append("ETag", "\"a\"") }
    }

    @Test(
        "A file is verified with the digest of its representation, or of a response with the whole file",
        arguments: ["Repr-Digest", "Content-Digest"], DigestVerificationPolicy.allCases)
    func verified(_ name: String, _ policy: DigestVerificationPolicy) async throws {
        let (right, wrong) = (try DigestScene.field(DigestScene.bytes, .sha256), try DigestScene.wrong())
        try await TestOrigin.withOrigin { request in
            Self.response([name: request.path == "/right" ? right : wrong])
        } run: { origin in
            let session = DigestScene.session(policy)
            try await DigestScene.withFile { path in
                let result = try await session.download(origin.url("/right"), to: path)
                #expect(result.verified.map(\.algorithm) == [.sha256])
                #expect(FileManager.default.contents(atPath: path.string) == Data(DigestScene.bytes))
            }
            try await DigestScene.withFile { path in
                let error = await #expect(throws: HTTPError.self) {
                    try await session.download(origin.url("/wrong"), to: path)
                }
                #expect(error?.code == .checksumMismatch && error?.resumableByteCount == nil)
                let directory = path.removingLastComponent().string
                let left = try FileManager.default.contentsOfDirectory(atPath: directory)
                #expect(left == [])
            }
        }
    }

    @Test("A download that requires a digest needs one, or a checksum")
    func required() async throws {
        try await TestOrigin.withOrigin { _ in
            Self.response([:])
        } run: { origin in
            let session = DigestScene.session(.required)
            try await DigestScene.withFile { path in
                let error = await #expect(throws: HTTPError.self) { try await session.download(origin.url(), to: path) }
                #expect(error?.code == .checksumMismatch)
                #expect(!FileManager.default.fileExists(atPath: path.string))
                let checksum = try Checksum(
                    .sha256, hexadecimal: "09ca7e4eaa6e8ae9c7d261167129184883644d07dfba7cbfbc4c8a2e08360d5b")
                let result = try await session.download(origin.url(), to: path, options: .init(checksum: checksum))
                #expect(result.verified == [checksum])
            }
            try await DigestScene.withFile { path in
                _ = try await DigestScene.session().download(origin.url(), to: path)
                #expect(FileManager.default.fileExists(atPath: path.string))
            }
        }
    }

    @Test("A digest is asked for once, unless there is a checksum or the caller asks differently")
    func preferences() async throws {
        try await TestOrigin.withOrigin { _ in
            Self.response([:])
        } run: { origin in
            let session = DigestScene.session(.off)
            let checksum = Checksum.sha256("09ca7e4eaa6e8ae9c7d261167129184883644d07dfba7cbfbc4c8a2e08360d5b")
            for options in [
                DownloadOptions(), .init(checksum: checksum), .init(headers: ["Want-Repr-Digest": "sha-512=1"]),
            ] {
                try await DigestScene.withFile { path in
                    _ = try await session.download(origin.url(), to: path, options: options)
                }
            }
            let wanted = origin.requests.map { $0.headers["Want-Repr-Digest"] }
            #expect(wanted == ["sha-256=10, sha-512=3", nil, "sha-512=1"])
        }
    }
}
