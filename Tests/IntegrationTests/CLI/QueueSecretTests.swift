import Foundation
import MartletTesting
import Testing

@Suite("Secrets of queue add and queue run")
struct QueueSecretTests {
    @Test(
        "No secret is in a queue file, in the output, or in the list; a note names the secrets that were not stored"
    )
    func notStored() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        let secret = "s3cr3t-hunter2"
        let additions: [([String], String)] = [
            (["-u", "me:\(secret)"], "Authorization"), (["--oauth2-bearer", secret], "Authorization"),
            (["-H", "Authorization: Bearer \(secret)"], "Authorization"),
            (["-b", "sid=\(secret)"], "Cookie"),
            (["--secret", "x-api-key", "-H", "X-Api-Key: \(secret)"], "X-Api-Key"),
        ]
        for (words, name) in additions {
            let run = try await scene.run("add", words + ["-d", "x", "http://h/"])
            #expect(run.status == 0)
            #expect(
                run.errors.hasPrefix("martlet: not stored: \(name); “martlet queue run” takes "),
                "\(run.errors)")
            #expect(!run.errors.contains(secret) && !run.text.contains(secret))
        }
        let named = try await scene.run("add", ["http://me:\(secret)@h/"])
        #expect(named.errors.hasPrefix("martlet: not stored: Authorization"), "\(named.errors)")
        let silent = try await scene.run("add", ["-s", "-u", "me:\(secret)", "http://h/"])
        #expect(silent.status == 0 && silent.errors.isEmpty)
        #expect(try scene.contents.range(of: Data(secret.utf8)) == nil)
        #expect(
            try scene.contents.range(of: Data(Data("me:\(secret)".utf8).base64EncodedString().utf8)) == nil)
        let list = try await scene.run("list")
        #expect(!list.text.contains(secret) && list.text.contains("not stored: Cookie"), "\(list.text)")
        let names = try await scene.list.map { $0["secret_fields"] as? [String] }
        #expect(names.dropFirst(3) == [["Cookie"], ["X-Api-Key"], ["Authorization"], ["Authorization"]])
    }

    @Test("run adds credentials to stored requests: a password, a token, cookies, a field, a netrc")
    func added() async throws {
        for (words, name, value) in [
            (["-u", "me:pass"], "Authorization", "Basic bWU6cGFzcw=="),
            (["--oauth2-bearer", "tok"], "Authorization", "Bearer tok"),
            (["-b", "sid=1"], "Cookie", "sid=1"),
            (["-H", "X-Api-Key: k"], "X-Api-Key", "k"),
            (["--netrc-file", "netrc"], "Authorization", "Basic bWU6cGFzcw=="),
        ] {
            let scene = try QueueScene()
            defer { scene.remove() }
            try scene.directory.write("machine 127.0.0.1 login me password pass\n", to: "netrc")
            try await TestOrigin.withOrigin(.plain) { request in
                request.headers[name] == value
                    ? .text("welcome")
                    : OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
            } run: { origin in
                try await scene.add("-d", "x", origin.url("/"))
                let run = try await scene.run("run", ["--until-empty"] + words)
                #expect(
                    run.status == 0 && run.text.contains("delivered 1 "), "\(words): \(run.text)\(run.errors)"
                )
                #expect(!run.text.contains(value))
            }
        }
    }

    @Test(
        "A declared secret is sent to no other origin, and is not stored if a server repeats it"
    )
    func declared() async throws {
        for status in [301, 303, 307, 308] {
            let scene = try QueueScene()
            defer { scene.remove() }
            try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { target in
                let redirect = OriginResponse(
                    status, headers: ["Location": "http://localhost:\(target.port)/there"])
                try await TestOrigin.withOrigin(.plain, handler: .fixed(redirect)) { origin in
                    try await scene.add(
                        "-d", "x", "--secret", "X-Api-Key", "-H", "X-Api-Key: a", origin.url("/"))
                    let run = try await scene.run(
                        "run", ["--until-empty", "--accept-redirects", "-H", "X-Api-Key: s3cr3t"])
                    #expect(run.status == 0, "\(run.errors)")
                    #expect(origin.requests.allSatisfy { $0.headers.values(of: "X-Api-Key") == ["s3cr3t"] })
                    #expect(target.requests.count == 1)
                    #expect(!target.requests.contains { $0.headers.contains("X-Api-Key") })
                }
            }
        }
        let scene = try QueueScene()
        defer { scene.remove() }
        let answer = OriginResponse(400, headers: ["X-Api-Key": "s3cr3t", "X-Other": "kept"])
        try await TestOrigin.withOrigin(.plain, handler: .fixed(answer)) { origin in
            try await scene.add("-d", "x", "--secret", "X-Api-Key", "-H", "X-Api-Key: a", origin.url("/"))
            _ = try await scene.run("run", ["--until-empty", "-H", "X-Api-Key: s3cr3t"])
            #expect(try scene.contents.range(of: Data("s3cr3t".utf8)) == nil)
            #expect(try scene.contents.range(of: Data("kept".utf8)) != nil)
        }
    }

    @Test("Digest is used if the server requests it")
    func digest() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain) { request in
            request.headers["Authorization"]?.hasPrefix("Digest ") == true
                ? .text("welcome")
                : OriginResponse(
                    401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
        } run: { origin in
            try await scene.add("-d", "x", origin.url("/"))
            let run = try await scene.run("run", ["--until-empty", "--digest", "-u", "me:pass"])
            #expect(run.status == 0, "\(run.text)\(run.errors)")
        }
    }

    @Test("Without required credentials a request waits: exit code 103, and nothing is lost")
    func missing() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .status(401)) { origin in
            try await scene.add("-d", "x", origin.url("/"))
            let run = try await scene.run(["--until-empty"], until: ": unauthorized, again in ")
            #expect(run.status == 103, "\(run.output)")
            #expect(try await scene.list.map { $0["state"] as? String } == ["waiting"])
        }
    }

    @Test("With waiting requests for several origins, single-origin credentials are rejected, but not a netrc")
    func severalOrigins() async throws {
        let scene = try QueueScene()
        defer { scene.remove() }
        try scene.directory.write("machine 127.0.0.1 login me password pass\n", to: "netrc")
        try await TestOrigin.withOrigin(.plain, handler: .echo) { first in
            try await TestOrigin.withOrigin(.plain, handler: .echo) { second in
                try await scene.add("-d", "x", first.url("/"))
                try await scene.add("-d", "x", second.url("/"))
                for words in [
                    ["-u", "me:pass"], ["--oauth2-bearer", "t"], ["-b", "a=1"], ["-H", "X-Key: 1"],
                ] {
                    let run = try await scene.run("run", ["--until-empty"] + words)
                    #expect(run.status == 2, "\(run.text)")
                    #expect(
                        run.errors.contains("option \(words[0]): requests to 2 origins wait"), "\(run.errors)"
                    )
                }
                #expect(first.connectionCount + second.connectionCount == 0)
                let run = try await scene.run("run", ["--until-empty", "--netrc-file", "netrc"])
                #expect(run.status == 0, "\(run.text)\(run.errors)")
                #expect(first.requests.allSatisfy { $0.headers["Authorization"] == "Basic bWU6cGFzcw==" })
            }
        }
    }
}
