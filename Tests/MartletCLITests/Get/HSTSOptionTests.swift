import Martlet
import MartletTesting
import Testing

@testable import MartletCLI

@Suite("The option --hsts")
struct HSTSOptionTests {
    @Test("Hosts are stored in the file, and their URLs are upgraded in the same and in later runs")
    func file() async throws {
        var options = OriginOptions.tls()
        options.tls?.additionalNames = ["known.example"]
        try await TestOrigin.withOrigin(options) { request in
            OriginResponse.text(request.path).with {
                $0.headers.append("Strict-Transport-Security", "max-age=1000; includeSubDomains")
            }
        } run: { origin in
            let scene = try GetScene()
            try scene.write(origin.authorityPEM ?? "", to: "ca.pem")
            let common = [
                "--cacert", scene.file("ca.pem"), "--hsts", scene.file("hsts"), "--resolve",
                "known.example:\(origin.port):127.0.0.1", "-o", scene.file("out"),
            ]
            let url = "known.example:\(origin.port)"
            #expect(try await scene.run(common + ["http://\(url)/plain"]) != .success)
            #expect(try await scene.run(common + ["https://\(url)/first"]) == .success)
            #expect(scene.text("hsts")?.contains("\n.known.example \"") == true)
            #expect(try await scene.run(common + ["http://\(url)/second"]) == .success)
            #expect(scene.text("out") == "/second")
            #expect(try await scene.run(["--hsts", scene.path, "http://\(url)/"]) == .readFailed)
            #expect(origin.requests.map(\.path) == ["/first", "/second"])
        }
    }
}
