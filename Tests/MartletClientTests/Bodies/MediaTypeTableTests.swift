import Martlet
import MartletCore
import MartletStreams
import MartletTesting
import Synchronization
import Testing

@Suite("Media types by file extension")
struct MediaTypeTableTests {
    private func table(_ bytes: some Sequence<UInt8>) -> MediaTypeTable {
        let types = MediaTypeTable.parse(Array(bytes))
        return MediaTypeTable { types }
    }

    private func table(_ text: String) -> MediaTypeTable { table(text.utf8) }

    @Test("Extensions are looked up without regard to case, in the table and among the common types")
    func lines() {
        let found = table(
            "# a comment\n\nx-world/x-sea\t\tsea SEE  # of these\r\nimage/png\ntext/x-late sea2\ntext/x-later sea2\n"
                + "IMAGE/X-UP up")
        #expect(found.contentType(ofFile: "a.sea") == "x-world/x-sea")
        #expect(found.contentType(ofFile: "/b.c/a.SeA") == "x-world/x-sea")
        #expect(found.contentType(ofFile: "a.see") == "x-world/x-sea")
        #expect(found.contentType(ofFile: "a.sea2") == "text/x-later")
        #expect(found.contentType(ofFile: "a.up") == "image/x-up")
        #expect(found.contentType(ofFile: "a.png") == "image/png")
        #expect(found.contentType(ofFile: "a.tar.gz") == "application/gzip")
        for name in [
            "", ".", "a", "a.", "sea", "a.of", "a.#", "a.unknown", "." + String(repeating: "x", count: 1000),
        ] {
            #expect(found.contentType(ofFile: name) == nil, "\(name)")
        }
    }

    @Test("Malformed lines are skipped, so no type can break the head of a part")
    func malformedLines() {
        let found = table(
            "text sea\n/x sea\ntext/x;a=b sea\na/b/c sea\ntext/x:y sea\n\u{0} sea\nte\u{0}xt/y sea\n sea")
        #expect(found.contentType(ofFile: "a.sea") == nil)
        #expect(
            table([0xFF, 0x2F, 0xFF, 0x20, 0x61, 0x0A]).contentType(ofFile: "x.a") == nil)
    }

    @Test(
        "A table of a megabyte is parsed in linear time", arguments: ["\n", " ", "#", "a/b c\n", "a/b ", "\t"])
    func hugeTables(unit: String) {
        let (_, time) = ThreadTime.of { table(String(repeating: unit, count: (1 << 20) / unit.utf8.count)) }
        #expect(time < .seconds(60))
    }

    @Test("A table is read from a file, and a missing file is an error")
    func files() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array("x-world/x-sea sea\n".utf8), to: "mime.types")
        let table = try await MediaTypeTable(contentsOf: directory.path("mime.types"))
        #expect(table.contentType(ofFile: "a.sea") == "x-world/x-sea")
        await #expect(throws: StorageError.self) {
            _ = try await MediaTypeTable(contentsOf: directory.path("none"))
        }
        await #expect(throws: StorageError.self) {
            _ = try await MediaTypeTable(contentsOf: FilePath(directory.path))
        }
    }

    @Test("The system's table has the common types even without a file on the system")
    func system() async {
        await MediaTypeTable.prepare()
        for (name, type) in [("a.jpg", "image/jpeg"), ("a.PNG", "image/png"), ("a.json", "application/json")] {
            #expect(MediaTypeTable.system.contentType(ofFile: name) == type)
            #expect(MediaTypeTable.builtIn.contentType(ofFile: name) == type)
        }
    }

    @Test("Files of a form have the type that is given, or else the type of the form's table")
    func form() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "a.sea")
        let path = directory.path("a.sea")
        let body = HTTPBody.multipart { form in
            form.mediaTypes = table("x-world/x-sea sea")
            form.file("one", at: path)
            form.data("two", [2], filename: "b.sea")
            form.file("three", at: path, contentType: "a/b")
            form.file("four", at: path, filename: "c.unknown")
        }
        let received = Mutex<(type: String?, body: [UInt8])?>(nil)
        try await TestOrigin.withOrigin { request in
            let bytes = try await request.collectBody()
            received.withLock { $0 = (request.headers["Content-Type"], bytes) }
            return .text("")
        } run: { origin in
            _ = try await HTTPSession.own().send(HTTPRequest(method: .post, url: origin.url()), body: body)
        }
        let receipt = try #require(received.withLock { $0 })
        let parts = try #require(MultipartReading(receipt.body, contentType: receipt.type)).parts
        #expect(
            parts.map { $0.head.last } == [
                "Content-Type: x-world/x-sea", "Content-Type: x-world/x-sea", "Content-Type: a/b",
                "Content-Type: application/octet-stream",
            ])
    }
}
