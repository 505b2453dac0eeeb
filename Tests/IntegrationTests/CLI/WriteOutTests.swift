import Foundation
import MartletTesting
import Testing

@Suite("Variables of -w")
struct WriteOutTests {
    @Test("A variable has the same value as in curl")
    func variables() async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let url = origin.url("/bytes/100")
            let format =
                "%{http_code} %{response_code} %{size_download} %{num_connects} %{method} %{scheme} %{http_version} "
                + "%{remote_ip}:%{remote_port} %{content_type} %{url} %{url_effective} %{exitcode} %{urlnum} "
                + "%header{ETag} 100%% \\t| %{filename_effective}"
            let run = try await Program.run("-sS", "-o", "/dev/null", "-w", format, url)
            let expected =
                "200 200 100 1 GET HTTP 1.1 127.0.0.1:\(origin.port) application/octet-stream \(url) \(url) 0 0 "
                + "\"pattern-100\" 100% \t| /dev/null"
            #expect(run.text == expected)
        }
    }

    @Test("Times are seconds with six decimals and follow one another")
    func times() async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let names = ["namelookup", "connect", "pretransfer", "starttransfer", "total"]
            let format = names.map { "%{time_\($0)}" }.joined(separator: " ")
            let run = try await Program.run("-sS", "-o", "/dev/null", "-w", format, origin.url("/delay/0.05"))
            let times = run.text.split(separator: " ")
            #expect(times.allSatisfy { $0.wholeMatch(of: /[0-9]+\.[0-9]{6}/) != nil }, "\(run.text)")
            let numbers = times.compactMap { Double($0) }
            try #require(numbers.count == 5, "\(run.text) \(run.errors)")
            #expect(numbers == numbers.sorted())
            #expect(numbers[3] >= 0.05)
        }
    }

    @Test("Times count from the start of the transfer, including redirects")
    func timesBehindRedirect() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            guard request.path == "/slow" else { return .text("done") }
            return .redirect(to: "/done").with { $0.delay = .milliseconds(100) }
        } run: { origin in
            let format = ["redirect", "pretransfer", "starttransfer"].map { "%{time_\($0)}" }
            let run = try await Program.run(
                "-sSL", "-o", "/dev/null", "-w", format.joined(separator: " "), origin.url("/slow"))
            let numbers = run.text.split(separator: " ").compactMap { Double($0) }
            try #require(numbers.count == 3, "\(run.text) \(run.errors)")
            #expect(numbers == numbers.sorted() && numbers[0] >= 0.1, "\(run.text)")
        }
    }

    @Test("-w is also printed after a failure, to the requested stream, and %{onerror} only then")
    func failure() async throws {
        let format = "%{http_code} %{exitcode}%{stderr}to errors%{stdout} back%{onerror} failed: %{errormsg}"
        let run = try await Program.run("-s", "-w", format, "http://127.0.0.1:1/")
        #expect(run.status == 7)
        #expect(run.text.hasPrefix("000 7 back failed: could not connect to 127.0.0.1 port 1"))
        #expect(run.errors == "to errors")
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            let run = try await Program.run("-s", "-w", "a%{onerror}b", origin.url("/"))
            #expect(run.text == "xa")
        }
    }

    // Only a transfer with a response had a connection to report.
    @Test(
        "The connection of a failed transfer is reported as in curl",
        arguments: [
            ("http", ServerScript(.expectRequestHead, .close)),
            ("https", ServerScript(.expect([22]), .close)),
            ("https", ServerScript(.expect([22]), .send("no TLS\r\n"), .close)),
        ])
    func failedConnection(scheme: String, script: ServerScript) async throws {
        let format =
            "%{exitcode} %{remote_ip} %{remote_port} %{local_ip} %{num_connects} %{scheme} %{http_code} %{size_header}"
        try await TestOrigin.withOrigin(scripts: script, script) { origin in
            let arguments = ["-q", "-s", "-w", format, "\(scheme)://127.0.0.1:\(origin.port)/"]
            let ours = try await Program.run(arguments)
            let theirs = try await Program.run("curl", arguments, input: [], in: nil)
            #expect(ours.text == theirs.text, "\(ours.errors)")
            #expect(ours.text.contains(" 127.0.0.1 \(origin.port) 127.0.0.1 1 "))
        }
    }

    @Test("%{json} and %{header_json} are JSON")
    func json() async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let common = ["-sS", "-o", "/dev/null", "-w"]
            let all = try await Program.run(common + ["%{json}", origin.url("/json")])
            let members = try #require(
                try JSONSerialization.jsonObject(with: Data(all.output)) as? [String: Any])
            #expect(members["http_code"] as? Int == 200)
            #expect(members["errormsg"] is NSNull)
            let fields = try await Program.run(common + ["%{header_json}", origin.url("/json")])
            let values = try #require(
                try JSONSerialization.jsonObject(with: Data(fields.output)) as? [String: [String]])
            #expect(values["content-type"] == ["application/json"])
        }
    }

    @Test("An unknown variable is named on standard error, and prints nothing")
    func unknown() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text(""))) { origin in
            let run = try await Program.run("-s", "-w", "<%{nonsense}>", origin.url("/"))
            #expect(run.text == "<>")
            #expect(run.errors.contains("nonsense"))
        }
    }
}
