import Foundation
import MartletTesting
import Testing

/// The requests of `martlet` and of `curl` for the same command line, as a server receives them.
@Suite("Requests compared with those of curl")
struct SentRequestTests {
    /// A request as a server received it, without the parts that two programs may write differently.
    private struct Seen: Equatable {
        var line: String
        var fields: [String]
        var body: String
    }

    static let lines: [(arguments: [String], path: String)] = [
        (["-u", "me:secret"], "/"), (["-u", "me:"], "/"), (["-u", "me:se:cret"], "/"),
        (["--basic", "-u", "me:secret"], "/"), (["--oauth2-bearer", "t0ken"], "/"),
        (["-u", "me:secret", "-H", "Authorization: own"], "/"),
        (["--digest", "-u", "me:secret"], "/"), (["--anyauth", "-u", "me:secret"], "/"),
        (["-n"], "/"), (["--netrc-file", "netrc"], "/"), (["-n", "-u", "me:secret"], "/"),
        (["--netrc-optional"], "/"),
        (["-b", "a=1; b=2"], "/"), (["-b", "a=1", "-b", "b=2"], "/"), (["-b", "jar"], "/"),
        (["-b", "jar", "-j"], "/"), (["-b", "missing"], "/"), (["-b", ""], "/set"),
        (["-L", "-b", "a=1"], "/redirect"), (["-L", "-c", "made"], "/set"), (["-L"], "/set"),
        (["-L", "-u", "me:secret"], "/redirect"), (["-L", "-d", "x"], "/redirect"),
        (["-L", "--post302", "-d", "x"], "/redirect"), (["-L", "-d", "x"], "/redirect?307"),
        (["-L", "-X", "DELETE"], "/redirect"), (["-L", "-I"], "/redirect"),
        (["-L", "-T", "file"], "/redirect"),
        (["-F", "a=b", "-F", "c=d e"], "/"), (["-F", "f=@file"], "/"), (["-F", "f=<file"], "/"),
        (["-F", "f=@file;type=text/x;filename=other"], "/"),
        (["-F", "a=b;type=text/html;charset=utf-8"], "/"),
        (["--form-string", "a=@b;c"], "/"), (["-F", "a=\"x;y\""], "/"),
        (["-F", "a=@file;filename=\"q\\\"q\""], "/"),
        (["--form-escape", "-F", "a\"b\\=@file;filename=\"q\\\"\\\\q\""], "/"),
        (["-L", "--proto-redir", "=https"], "/redirect"),
        (["-L", "--proto-redir", "-all,http"], "/redirect"),
        (["-L", "--proto-redir", "-http,+ftp"], "/redirect"), (["-L", "--proto-redir", "="], "/redirect"),
        (["-F", "a=b", "-X", "PUT"], "/"), (["-F", "a=@-"], "/"),
        (["-L", "-X", "POST", "-d", "x"], "/redirect"), (["-L", "-F", "a=b"], "/redirect"),
        (["-L", "-d", "x", "--post303"], "/redirect?303"), (["-L", "--digest", "-u", "me:s"], "/redirect"),
        // If only Digest is allowed, the body waits for the challenge.
        (["--digest", "-u", "me:secret", "-d", "a=1"], "/"),
        (["--digest", "-u", "me:secret", "-d", ""], "/"),
        (["--digest", "-u", "me:secret", "--json", "{}"], "/"),
        (["--digest", "-u", "me:secret", "-T", "file"], "/"),
        (["--digest", "-u", "me:secret", "-T", "-"], "/"),
        (["--digest", "-n", "-d", "a=1"], "/"), (["--digest", "-d", "a=1"], "/"),
        (["--digest", "-u", "me:secret", "-X", "PATCH", "-d", "x"], "/"),
        (["--digest", "-u", "me:secret", "-d", "a=1"], "/open"),
        (["--digest", "-u", "me:secret", "-T", "-"], "/open"),
        (["--digest", "-u", "me:secret", "-T", "-"], "/missing"),
        (["-L", "--digest", "-u", "me:s", "-d", "x"], "/redirect?307"),
        (["-L", "--digest", "-u", "me:s", "-d", "x"], "/redirect"),
        (["--anyauth", "-u", "me:secret", "-d", "a=1"], "/"),
        (["--json", "{}"], "/"), (["-G", "--json", "{}"], "/"),
    ]

    @Test("The same command line sends the same requests", arguments: lines)
    func same(_ line: (arguments: [String], path: String)) async throws {
        let ours = try await seen(Program.path, line)
        let theirs = try await seen("curl", line)
        #expect(ours.status == theirs.status)
        #expect(ours.requests == theirs.requests)
    }

    private func seen(
        _ program: String, _ line: (arguments: [String], path: String)
    ) async throws -> (status: Int32, requests: [Seen]) {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let (requests, note) = AsyncStream.makeStream(of: Seen.self)
        let status = try await TestOrigin.withOrigin(.plain) { request in
            note.yield(try await SentRequestTests.seen(request))
            switch request.path {
            case "/redirect":
                return .redirect(to: "/there", status: Int(request.query.description) ?? 302)
            case "/set":
                return .redirect(to: "/there").with { $0.headers.append("Set-Cookie", "k=v; Path=/") }
            case "/open": return .text("x")
            case "/missing": return .text("x", status: 404)
            default:
                let isDigest = line.arguments.contains("--digest") || line.arguments.contains("--anyauth")
                guard isDigest, !request.headers.contains("authorization") else { return .text("x") }
                return OriginResponse(
                    401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
            }
        } run: { origin -> Int32 in
            try directory.write("machine 127.0.0.1 login net password rc\n", to: ".netrc")
            try directory.write("machine 127.0.0.1 login other password file\n", to: "netrc")
            try directory.write("one\ntwo\n", to: "file")
            try directory.write(
                "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t1\n"
                    + "127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tkept\t2\n"
                    + "127.0.0.1\tFALSE\t/\tTRUE\t4102444800\tsecure\t3\nother.test\tFALSE\t/\tFALSE\t0\tforeign\t4\n",
                to: "jar")
            let arguments = ["-q", "-sS"] + line.arguments + [origin.url(line.path)]
            return try await Program.run(
                program, arguments, input: Array("piped".utf8), in: directory,
                environment: ["HOME=\(directory.path)"]
            ).status
        }
        note.finish()
        var all: [Seen] = []
        for await request in requests { all.append(request) }
        return (status, all)
    }

    private static func seen(_ request: OriginRequest) async throws -> Seen {
        var body = String(decoding: try await request.collectBody(), as: UTF8.self)
        var fields: [String] = []
        for field in request.headers {
            var value = field.value
            switch field.name.lowercased() {
            // These parts differ: names of programs and ports, curl's request before it sends a file, and a length that
            // depends on the boundary.
            case "user-agent", "host", "expect": continue
            // Martlet sends Content-Length: 0 with a POST without a body; `curl -X POST` does not.
            case "content-length" where value == "0": continue
            case "content-length"
            where request.headers.values(of: "content-type").first?.hasPrefix("multipart") == true:
                continue
            case "content-type":
                if let mark = value.firstRange(of: "boundary=") {
                    let boundary = value[mark.upperBound...]
                    body = body.replacing(boundary, with: "BOUNDARY")
                    value = String(value[..<mark.upperBound])
                }
            case "authorization" where value.hasPrefix("Digest"):
                value = value.replacing(/(cnonce|response)="[^"]*"/, with: "")
                value = value.dropFirst(7).split(separator: ",").map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                .filter { !$0.isEmpty }.sorted().joined(separator: ",")
            case "cookie":
                // curl joins those of several -b without a blank, and puts those of its jar first.
                value = value.split(separator: ";").map { $0.drop { $0 == " " } }.sorted().joined(
                    separator: "; ")
            default: break
            }
            fields.append("\(field.name.lowercased()): \(value)")
        }
        return Seen(line: "\(request.method) \(request.target)", fields: fields.sorted(), body: body)
    }
}
