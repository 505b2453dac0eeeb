import MartletTesting
import Testing

@Suite("martlet compared with curl")
struct CurlComparisonTests {
    static let lines: [(arguments: [String], path: String)] = [
        (["-i"], "/json"), (["-I"], "/bytes/100"), (["-i"], "/chunked/5000?size=700"), (["-i"], "/hints"),
        (["-i", "-r", "10-19"], "/bytes/100"), (["-i", "-r", "-5"], "/bytes/100"),
        (["-i", "-r", "90"], "/bytes/100"),
        (["-i", "-r", "500-"], "/bytes/100"), (["-i", "-f"], "/status/404"), (["-f"], "/status/404"),
        (["-i", "--fail-with-body"], "/status/503"), (["-i"], "/status/204"), (["-i"], "/redirect/1"),
        (["--compressed"], "/gzip"), (["--compressed"], "/deflate"), ([], "/gzip"),
        (["-d", "a=1", "-d", "b"], "/mirror"),
        (["--data-urlencode", "q=ä ö/&=+~"], "/mirror"), (["--data-urlencode", "plain text"], "/mirror"),
        (["--json", "{}"], "/mirror"), (["-G", "-d", "a=1"], "/mirror"), (["-T", "file"], "/mirror"),
        (["-T", "-"], "/mirror"), (["-d", "@file"], "/mirror"), (["--data-binary", "@file"], "/mirror"),
        (["-X", "PUT", "-d", "x"], "/mirror"), (["--max-filesize", "10"], "/bytes/100"),
        (["-m", "0.3"], "/stall"),
        ([], "/truncate/1000"), ([], "/truncate/1000?chunked"), ([], "/cut/1000"),
        (
            ["-w", "%{http_code} %{size_download} %{size_header} %{num_connects} %{content_type}\\n"],
            "/bytes/100"
        ),
        (
            ["-w", "%{method} %{scheme} %{http_version} %{url_effective} %{remote_ip} %{exitcode}\\n"],
            "/json"
        ),
        (["-w", "%{header_json}"], "/status/200"), (["-w", "%{redirect_url}"], "/redirect/1"),
        (["-w", "%{size_upload} %{num_headers}", "-d", "12345"], "/upload"), (["-0"], "/bytes/10"),
        (["-L"], "/redirect/3"), (["-iL"], "/redirect/2"), (["-IL"], "/redirect/1"),
        (["-fiL"], "/redirect/1"),
        (["-L", "-D", "-"], "/redirect/1"), (["-iL", "--max-redirs", "1"], "/redirect/3"),
        (["-L", "--max-redirs", "0"], "/redirect/1"), (["-L", "--max-redirs", "-1"], "/redirect/60"),
        (["-L"], "/redirect/51"), (["-L", "--max-redirs", "3"], "/redirect/3"),
        (
            [
                "-L", "-w",
                "%{num_redirects} %{url_effective} [%{redirect_url}] %{size_header} %{num_connects} %{method}\\n",
            ],
            "/redirect/2"
        ),
        (["-w", "%{num_redirects} %{redirect_url} %{time_redirect}\\n"], "/redirect/2"),
        (["-iL", "-d", "a=1"], "/redirect/1?status=303"), (["-iL", "-d", "a=1"], "/redirect/1?status=308"),
        (["--retry", "1", "--retry-delay", "1"], "/status/503"), (["--retry", "1"], "/status/404"),
        (["-i", "-u", "me:secret"], "/bytes/10"), (["-F", "a=b", "-w", "%{method}"], "/status/200"),
        (["-z", "Sun, 06 Nov 1994 08:49:37 GMT", "-i"], "/bytes/10"), (["-z", "neither"], "/bytes/10"),
        (["-C", "5", "-i"], "/bytes/10"), (["-C", "10"], "/bytes/10"), (["-C", "5"], "/chunked/10"),
        (["-C", "5"], "/status/404"), (["-C", "5", "-f"], "/status/404"), (["-C", "-"], "/bytes/10"),
        (["-C", "2", "-T", "file"], "/mirror"), (["-C", "-", "-T", "file"], "/mirror"),
        (["-C", "99", "-T", "file"], "/mirror"), (["-C", "x"], "/bytes/10"),
        (["--limit-rate", "1M", "-Y", "1", "-y", "300"], "/bytes/100"),
        (["-w", "%{http_connect}[%{ftp_entry_path}]"], "/json"), (["--etag-save", "-"], "/bytes/10"),
        (["--etag-save", "-"], "/json"),
        (["-D", "-", "-o", "out"], "/bytes/10"), (["-H", "Range: bytes=1-2"], "/bytes/10"),
    ]

    @Test("Bytes that arrived before the timeout are written, and the exit code is 28")
    func stalledBody() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let start = TestPattern.bytes(from: 0, count: 100)
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            // On a slow machine the timeout may expire before the body starts: then a longer one is used.
            var seconds = 0.5
            while true {
                let arguments = ["-q", "-sS", "-m", "\(seconds)", origin.url("/stall/100")]
                let ours = try await Program.run(arguments, in: directory)
                let theirs = try await Program.run("curl", arguments, input: [], in: directory)
                #expect(ours.status == 28 && theirs.status == 28, "\(ours.errors) \(theirs.errors)")
                #expect(!ours.errors.isEmpty && !theirs.errors.isEmpty)
                #expect(start.starts(with: ours.output) && start.starts(with: theirs.output))
                if ours.output == start, theirs.output == start { break }
                seconds *= 3
                try #require(seconds < 150, "the body was never written")
            }
        }
    }

    @Test("The same command line gives the same output and exit code", arguments: lines)
    func same(_ line: (arguments: [String], path: String)) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("a file\nof two lines\n", to: "file")
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let arguments = ["-q", "-sS"] + line.arguments + [origin.url(line.path)]
            let input = Array("from standard input".utf8)
            let ours = try await Program.run(arguments, input: input, in: directory)
            let theirs = try await Program.run("curl", arguments, input: input, in: directory)
            #expect(ours.status == theirs.status, "\(ours.errors) \(theirs.errors)")
            // The clock may have ticked in between.
            let date = /Date: [^\r]*\r\n|"date":\[[^\]]*\]/
            let (text, expected) = (
                ours.text.replacing(date, with: ""), theirs.text.replacing(date, with: "")
            )
            #expect(text == expected)
            #expect(ours.errors.isEmpty == theirs.errors.isEmpty)
        }
    }
}
