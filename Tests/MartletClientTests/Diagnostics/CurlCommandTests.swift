import Foundation
import Martlet
import Testing

@Suite("Requests as curl commands")
struct CurlCommandTests {
    private func request(
        _ method: HTTPRequest.Method = .get, _ url: String = "https://h.example/p", _ fields: HTTPFields = [:]
    ) throws -> HTTPRequest {
        try HTTPRequest(method: method, url: url, headers: fields)
    }

    @Test("A GET contains the URL and the header fields")
    func get() throws {
        let request = try request(.get, "https://h.example/p?q=1&r", [.accept: "text/html", .range: ""])
        #expect(
            request.curlCommand
                == "curl 'https://h.example/p?q=1&r' -H 'Accept: text/html' -H 'Range;'")
    }

    @Test("The method is named if curl would choose another one")
    func methods() throws {
        #expect(try request(.head).curlCommand == "curl --head https://h.example/p")
        #expect(try request(.post).curlCommand == "curl -X POST https://h.example/p")
        #expect(try request(.delete).curlCommand == "curl -X DELETE https://h.example/p")
        let posted = try request(.post).curlCommand(body: .text("a"))
        #expect(
            posted
                == "curl https://h.example/p -H 'Content-Type: text/plain; charset=utf-8' --data-raw a")
        let headed = try request(.head).curlCommand(body: .text("a", contentType: nil))
        #expect(headed == "curl -X HEAD https://h.example/p -H Content-Type: --data-raw a")
        let got = try request(.get).curlCommand(body: .text("a", contentType: nil))
        #expect(got == "curl -X GET https://h.example/p -H Content-Type: --data-raw a")
    }

    @Test("curl does not expand or normalize the URL")
    func globs() throws {
        #expect(try request(.get, "http://[::1]/a").curlCommand == "curl --globoff 'http://[::1]/a'")
        let dots = HTTPRequest(method: .get, url: try HTTPURL("http://h.example/a/../b", pathAsIs: true))
        #expect(dots.curlCommand == "curl --path-as-is http://h.example/a/../b")
    }

    @Test("Credentials and cookies are masked, but the kind of credentials is shown")
    func masked() throws {
        let fields: HTTPFields = [
            .authorization: "Bearer hunter2", .proxyAuthorization: "hunter2", .cookie: "a=hunter2; b=hunter2",
            .userAgent: "x",
        ]
        let command = try request(.get, "https://h.example/p", fields).curlCommand
        #expect(!command.contains("hunter2"))
        #expect(command.contains("'Authorization: Bearer ***'"))
        #expect(command.contains("'Proxy-Authorization: ***'"))
        #expect(command.contains("'Cookie: a=***; b=***'"))
    }

    @Test("A password in the URL is masked, even if the URL is invalid")
    func userInfo() {
        let request = HTTPRequest(method: .get, scheme: "https", authority: "me:hunter2@h.example", path: "/")
        #expect(request.curlCommand == "curl 'https://***@h.example/'")
        let odd = HTTPRequest(method: .get, scheme: "https", authority: "me:hunter2@h/x", path: "/?a b")
        #expect(!odd.curlCommand.contains("hunter2"))
        #expect(request.curlCommand(mask: .none).contains("me:hunter2@h.example"))
    }

    @Test("Query items and form items with the usual names of secrets are masked")
    func tokens() throws {
        let url = "https://h.example/?access_token=hunter2&a=1&X-Amz-Signature=hunter2&user%5Bpassword%5D=hunter2"
        let form = HTTPBody.form([
            QueryItem(name: "client_secret", value: "hunter2"), QueryItem(name: "refresh_token", value: "hunter2"),
        ])
        let command = try request(.post, url).curlCommand(body: form)
        #expect(command.contains("?access_token=***&a=1&X-Amz-Signature=***&user%5Bpassword%5D=***'"))
        #expect(command.contains("--data-raw 'client_secret=***&refresh_token=***'"))
        let invalid = HTTPRequest(method: .get, scheme: "https", authority: "me@h.example", path: "/?token=hunter2")
        #expect(invalid.curlCommand == "curl 'https://***@h.example/?token=***'")
        #expect(try request(.post, url).curlCommand(body: form, mask: .none).contains("client_secret=hunter2"))
    }

    @Test("Header fields, query items and form items can be declared secret")
    func declared() throws {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let mask = SecretRedaction.standard.adding(fields: [name], queryItems: ["Token"])
        let command = try request(.post, "https://h.example/?a=1&tok%65n=hunter2&b", [name: "hunter2"])
            .curlCommand(body: .form([QueryItem(name: "token", value: "hunter2")]), mask: mask)
        #expect(!command.contains("hunter2"))
        #expect(command.contains("?a=1&tok%65n=***&b"))
        #expect(command.contains("--data-raw 'token=***'"))
    }

    @Test("Without a mask the secrets are printed")
    func unmasked() throws {
        let command = try request(.get, "https://h.example/p", [.authorization: "Bearer hunter2"])
            .curlCommand(mask: .none)
        #expect(command.contains("Bearer hunter2"))
    }

    @Test("A body that is not text is piped in")
    func binary() throws {
        let command = try request(.post).curlCommand(body: .bytes([0, 0xFF, 0x41, 0x27, 0x5C]))
        #expect(command.hasPrefix("printf '%b' '\\0000\\0377A\\0047\\0134' | curl "))
        #expect(command.hasSuffix("--data-binary @-"))
    }

    @Test("Files, streams and large bodies are named and not read")
    func otherBodies() throws {
        let post = try request(.post, "https://h.example/p", [.contentType: "x/y"])
        #expect(post.curlCommand(body: .file("/a b")).hasSuffix("--data-binary '@/a b'"))
        #expect(
            post.curlCommand(body: .stream { Pieces("a") })
                .hasSuffix("-H 'Transfer-Encoding: chunked' --data-binary @-"))
        let large = HTTPBody.bytes([UInt8](repeating: 0x61, count: 70_000))
        #expect(post.curlCommand(body: large).hasSuffix("--data-binary @-"))
        #expect(post.curlCommand(body: large).count < 200)
    }

    @Test("A form becomes curl's form options")
    func form() throws {
        let body = HTTPBody.multipart { form in
            form.field("title", "@a;b\"c")
            form.file("photo", at: "/data/sea \"x\".jpg")
            form.part("json", .json(["a": 1]))
            form.field("token", "hunter2")
        }
        let mask = SecretRedaction.standard.adding(queryItems: ["token"])
        let command = try request(.post).curlCommand(body: body, mask: mask)
        #expect(command.contains("--form-string 'title=@a;b\"c'"))
        #expect(
            command.contains(
                #"-F 'photo=@"/data/sea \"x\".jpg";filename="sea \"x\".jpg";type=image/jpeg'"#))
        #expect(command.contains(#"-F 'json="{\"a\":1}";type=application/json'"#))
        #expect(command.contains("--form-string 'token=***'"))
        #expect(!command.contains("Content-Type: multipart"))
    }

    @Test("A shell parses every word as it was quoted")
    func shell() async throws {
        let nasty = "a'b\"c$(touch /tmp/never)`id`\\ \n;&|<>*?~!#{}\t–ä"
        let name = try #require(HTTPField.Name("X-Note"))
        let request = try request(.post, "https://h.example/?q='$HOME'", [name: "it's $HOME `id`"])
        let command = request.curlCommand(body: .text(nasty, contentType: nil))
        let output = try await Shell.output("curl() { printf '%s\\0' \"$@\"; }; \(command)")
        let words = output.split(separator: 0, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        #expect(
            words.dropLast() == [
                "https://h.example/?q=%27$HOME%27", "-H", "X-Note: it's $HOME `id`", "-H", "Content-Type:",
                "--data-raw", nasty,
            ])
    }

    @Test("A shell pipes the bytes of a body unchanged")
    func shellBytes() async throws {
        let bytes = Array(UInt8.min...UInt8.max)
        let command = try request(.post).curlCommand(body: .bytes(bytes))
        #expect(try await Shell.output("curl() { cat; }; \(command)") == bytes)
    }
}
