import FoundationEssentials
import MartletTesting
import MartletTransport
import SystemPackage
import Testing

@Suite("Files")
struct FileTests {
    /// A directory with a subdirectory `site`, which is served, and a secret file next to it.
    private final class Directory {
        let path: String

        init() throws {
            path =
                FileManager.default.temporaryDirectory.path
                + "/martlet-files-\(UInt64.random(in: 0 ... .max))"
            let site = path + "/site"
            try FileManager.default.createDirectory(atPath: site + "/sub", withIntermediateDirectories: true)
            try Directory.write("outside", to: path + "/secret.txt")
            try Directory.write("hello file", to: site + "/a.txt")
            try Directory.write("{}", to: site + "/sub/b c.json")
            try FileManager.default.createSymbolicLink(
                atPath: site + "/leak.txt", withDestinationPath: path + "/secret.txt")
            try FileManager.default.createSymbolicLink(atPath: site + "/up", withDestinationPath: path)
        }

        /// Writes a file without `Data.write(to:)`, which waits for the disk on a thread of Swift's pool.
        static func write(_ text: String, to path: String) throws {
            let file = try FileDescriptor.open(
                FilePath(path), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll(text.utf8) }
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        func client(_ validators: FileValidators = .strong) async throws -> RawClient {
            try await RawClient(
                MockTransport(handler: .files(in: FilePath(path + "/site"), validators: validators)))
        }
    }

    @Test("A file has its type, length, bytes and validators")
    func servesFile() async throws {
        let directory = try Directory()
        let answer = try await directory.client().get("/a.txt")
        #expect(answer.status == 200)
        #expect(answer.text == "hello file")
        #expect(answer.field("Content-Type") == "text/plain; charset=utf-8")
        #expect(answer.field("ETag")?.hasPrefix("\"a-") == true)
        #expect(answer.field("Last-Modified")?.hasSuffix("GMT") == true)
    }

    @Test("A request with the validators of a file returns 304")
    func revalidates() async throws {
        let directory = try Directory()
        let client = try await directory.client()
        let first = try await client.get("/a.txt")
        let tag = try #require(first.field("ETag"))
        #expect(try await client.get("/a.txt", fields: "If-None-Match: \(tag)\r\n").status == 304)
        let part = try await client.get("/a.txt", fields: "Range: bytes=6-\r\nIf-Range: \(tag)\r\n")
        #expect(part.status == 206)
        #expect(part.text == "file")
    }

    @Test("Weak tags are marked, and disabled validators are not sent")
    func choosesValidators() async throws {
        let directory = try Directory()
        let weak = try await directory.client(.weak)
        #expect(try await weak.get("/a.txt").field("ETag")?.hasPrefix("W/\"") == true)
        let none = try await directory.client(.none)
        let answer = try await none.get("/a.txt")
        #expect(answer.field("ETag") == nil)
        #expect(answer.field("Last-Modified") == nil)
    }

    @Test("Percent-encoded names are decoded once")
    func decodesNames() async throws {
        let directory = try Directory()
        let client = try await directory.client()
        #expect(try await client.get("/sub/b%20c.json").text == "{}")
        #expect(try await client.get("/sub/b%2520c.json").status == 404)
    }

    @Test(
        "No path leads out of the directory",
        arguments: [
            "/../secret.txt", "/%2e%2e/secret.txt", "/sub/../../secret.txt", "/..%2fsecret.txt", "/leak.txt",
            "/up/secret.txt", "/a.txt%00", "//etc/passwd", "/%2fetc%2fpasswd",
        ])
    func staysInside(_ path: String) async throws {
        let directory = try Directory()
        let answer = try await directory.client().get(path)
        #expect([400, 404].contains(answer.status))
        #expect(!answer.text.contains("outside"))
    }

    @Test("A directory with a trailing slash is listed, and one without it is redirected")
    func listsDirectories() async throws {
        let directory = try Directory()
        let client = try await directory.client()
        let answer = try await client.get("/sub/")
        #expect(answer.text.contains("<a href=\"./b%20c.json\">b c.json</a>"))
        let redirect = try await client.get("/sub")
        #expect(redirect.status == 301)
        #expect(redirect.field("Location") == "/sub/")
    }

    @Test("The index.html of a directory is served for it")
    func servesIndex() async throws {
        let directory = try Directory()
        try Directory.write("<p>index", to: directory.path + "/site/index.html")
        #expect(try await directory.client().get("/").text == "<p>index")
    }

    @Test("A missing file returns 404, and a method that writes returns 405")
    func rejects() async throws {
        let directory = try Directory()
        let client = try await directory.client()
        #expect(try await client.get("/missing").status == 404)
        #expect(try await client.get("/a.txt", method: "DELETE").status == 405)
    }
}
