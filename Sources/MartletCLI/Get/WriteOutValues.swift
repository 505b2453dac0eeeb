import Martlet
import MartletWire

/// Finds the values of the variables of `-w`.
struct WriteOutValues: Sendable {
    let report: TransferReport

    private var connection: ConnectionInformation? { report.metrics?.connection }

    /// The value; `nil` when there is no variable of that name.
    func value(of name: String) -> WriteOutValue? {
        if name.hasPrefix("time_") { return .seconds(time(name)) }
        switch name {
        case "http_code", "response_code": return .status(report.effectiveStatus)
        case "http_connect": return .status(report.tunnelHead?.status ?? 0)
        // It belongs to another protocol.
        case "ftp_entry_path": return .missing
        case "http_version": return .text(version)
        case "exitcode": return .number(Int(report.status.code))
        case "errormsg": return report.message.isEmpty ? .missing : .text(report.message)
        case "method": return .text(report.method)
        case "scheme":
            let wasTried = report.metrics != nil || report.status == .connectFailed
            return wasTried ? .text(report.url.scheme.rawValue.uppercased()) : .missing
        case "url": return .text(report.givenURL)
        case "url_effective": return .text(report.url.withoutUserInfo.absoluteString)
        case "urlnum": return .number(report.number)
        case "referer": return report.referer.map { .text($0) } ?? .missing
        case "content_type": return field("content-type")
        case "redirect_url": return redirection
        case "filename_effective": return report.file.map { .text($0) } ?? .missing
        case "remote_ip": return .text(WriteOutValues.host(connection?.remoteAddress))
        case "remote_port": return .number(WriteOutValues.port(connection?.remoteAddress))
        case "local_ip": return .text(WriteOutValues.host(connection?.localAddress))
        case "local_port": return .number(WriteOutValues.port(connection?.localAddress))
        default: return count(name)
        }
    }

    private func count(_ name: String) -> WriteOutValue? {
        let received = Int(clamping: report.metrics?.receivedBodyByteCount ?? 0)
        let uploaded = Int(clamping: report.uploadedByteCount)
        switch name {
        case "size_download": return .number(received)
        case "size_upload": return .number(uploaded)
        case "size_header": return .number(report.headByteCount)
        case "size_request": return .number(report.metrics == nil ? 0 : report.sentHeadByteCount)
        case "speed_download": return .number(perSecond(received))
        case "speed_upload": return .number(perSecond(uploaded))
        case "num_connects": return .number(connects)
        case "num_headers": return .number((report.head ?? report.tunnelHead)?.fields.count ?? 0)
        case "num_redirects": return .number(redirects.count)
        case "ssl_verify_result":
            return .number(
                report.url.scheme == .https ? verification(report.verifyResult) : report.verifyResult)
        case "proxy_ssl_verify_result":
            return .number(
                report.url.scheme == .http ? verification(report.proxyVerifyResult) : report.proxyVerifyResult
            )
        default: return nil
        }
    }

    /// Why the chain was refused; or would have been, where any is accepted. A connection that is used again has no chain.
    private func verification(_ refused: Int) -> Int {
        guard refused == 0, report.metrics?.isConnectionReused == false,
            let fault = connection?.tls?.acceptedFault
        else { return refused }
        return TLSError(fault).verificationCode ?? 0
    }

    /// How many connections were opened; what the cache answered had none.
    private var connects: Int {
        let metrics = report.steps.compactMap(\.exchange?.metrics) + [report.metrics].compactMap { $0 }
        return metrics.count { $0.connection != nil && !$0.isConnectionReused }
    }

    /// The redirects that were followed.
    private var redirects: [HTTPHop] { report.steps.map(\.hop).filter { $0.reason == .redirect } }

    private func perSecond(_ bytes: Int) -> Int {
        let seconds = report.elapsed / .seconds(1)
        return seconds > 0 ? Int(Double(bytes) / seconds) : 0
    }

    private func time(_ name: String) -> Duration {
        let metrics = report.metrics ?? HTTPMetrics()
        // Times count from the beginning of the transfer, redirects and all.
        let begin = report.steps.last.map { $0.hop.ended + $0.hop.delay } ?? .zero
        let named = metrics.dns.map { begin + $0 } ?? .zero
        let connected = metrics.connect.map { max(named, begin) + $0 } ?? .zero
        switch name {
        case "time_total": return report.elapsed
        case "time_namelookup": return named
        case "time_connect": return connected
        case "time_appconnect": return metrics.tls.map { connected + $0 } ?? .zero
        case "time_pretransfer": return metrics.connection == nil ? .zero : begin + metrics.wait
        case "time_redirect": return redirects.last?.ended ?? .zero
        case "time_starttransfer": return metrics.firstByte ?? .zero
        default: return .zero
        }
    }

    private var version: String {
        switch report.head?.version {
        case .http11: "1.1"
        case .http10: "1.0"
        case nil: "0"
        }
    }

    private func field(_ name: String) -> WriteOutValue {
        report.head?.fields.firstValue(of: name).map { .text($0) } ?? .missing
    }

    /// Where the response sends to.
    private var redirection: WriteOutValue {
        guard let head = report.head, (300...399).contains(head.status),
            let location = head.fields.firstValue(of: "location"),
            let url = try? report.url.resolving(location)
        else { return .missing }
        return .text(url.absoluteString)
    }

    /// The host of `127.0.0.1:80` or `[::1]:80`.
    private static func host(_ address: String?) -> String {
        guard let address, let colon = address.lastIndex(of: ":"),
            Int(address[address.index(after: colon)...]) != nil
        else { return "" }
        let host = address[..<colon]
        return host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host)
    }

    private static func port(_ address: String?) -> Int {
        guard let address, let colon = address.lastIndex(of: ":") else { return 0 }
        return Int(address[address.index(after: colon)...]) ?? 0
    }
}
