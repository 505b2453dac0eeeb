import Foundation
import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Modification times of files that get writes", .timeLimit(.minutes(10)))
struct RemoteTimeTests {
    private func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            OriginResponse.text("text").with { response in
                response.headers.append(
                    "Last-Modified", request.path == "/bad" ? "soon" : "Sun, 06 Nov 1994 08:49:37 GMT")
                if request.path == "/304" { response = OriginResponse(304, headers: response.headers) }
                if request.path == "/cut" { response.fault = OriginFault(.close, afterBodyBytes: 2) }
            }
        } run: { (origin) async throws in
            try await body(origin)
        }
    }

    private func seconds(_ scene: GetScene, _ name: String) throws -> Double {
        let attributes = try FileManager.default.attributesOfItem(atPath: scene.file(name))
        return try #require(attributes[.modificationDate] as? Date).timeIntervalSince1970
    }

    @Test("-R gives a file the time of Last-Modified, and --no-remote-time disables that")
    func time() async throws {
        let scene = try GetScene()
        try await withOrigin { (origin) async throws in
            #expect(try await scene.run("-R", "-o", scene.file("a"), origin.url("/")) == .success)
            #expect(try seconds(scene, "a") == 784_111_777)
            let directory = ["--output-dir", scene.path]
            #expect(try await scene.run(["-R", "-O"] + directory + [origin.url("/b")]) == .success)
            #expect(try seconds(scene, "b") == 784_111_777)
            let words = ["-R", "--no-remote-time", "-o", scene.file("c"), origin.url("/")]
            #expect(try await scene.run(words) == .success)
            #expect(try seconds(scene, "c") > 1_000_000_000)
        }
    }

    @Test("An invalid time, a failure and a 304 keep the time of the file")
    func none() async throws {
        let scene = try GetScene()
        try scene.write("before", to: "304")
        try await withOrigin { (origin) async throws in
            for (path, status) in [
                ("bad", MartletCLI.ExitStatus.success), ("cut", .partialBody), ("304", .success),
            ] {
                let ended = try await scene.run("-R", "-o", scene.file(path), origin.url("/\(path)"))
                #expect(ended == status, "\(path)")
                #expect(try seconds(scene, path) > 1_000_000_000, "\(path)")
            }
        }
        #expect(scene.text("304") == "before")
    }

    @Test("A path that is not a regular file keeps its time")
    func special() async throws {
        let before = try FileManager.default.attributesOfItem(atPath: "/dev/null")[.modificationDate] as? Date
        let scene = try GetScene()
        try await withOrigin { (origin) async throws in
            #expect(try await scene.run("-R", "-o", "/dev/null", origin.url("/")) == .success)
        }
        let after = try FileManager.default.attributesOfItem(atPath: "/dev/null")[.modificationDate] as? Date
        #expect(after?.timeIntervalSince1970 != 784_111_777 && before != nil)
    }
}
