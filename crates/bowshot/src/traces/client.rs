//! The collector, as OTLP over gRPC has it (<https://opentelemetry.io/docs/specs/otlp/#otlpgrpc>). It is connected to when there is
//! something to send, and again when it was gone.

use super::messages::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, InstrumentationScope, KeyValue, Resource,
    ResourceSpans, ScopeSpans, Span,
};
use crate::config::TraceSettings;
use crate::usage::Usage;
use anyhow::{Context, Result};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Request;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How often a silent connection is asked whether somebody is there.
const ASKED_EVERY: Duration = Duration::from_secs(30);
/// Bytes of an answer, which says how many spans were refused and why.
const ANSWER_BYTES: usize = 64 << 10;
/// Letters of what a collector says that come into the log.
const REASON_LENGTH: usize = 200;

pub(super) struct Client {
    grpc: Grpc<Channel>,
    headers: MetadataMap,
    resource: Resource,
}

/// What a collector has not taken.
pub(super) struct Refused {
    pub(super) spans: u64,
    pub(super) reason: String,
}

impl Client {
    /// To be called on the runtime that it will be used on.
    ///
    /// # Errors
    /// For an address that cannot be one, or authorities that cannot be read. Whether anybody is there does not matter.
    pub(super) fn new(settings: &TraceSettings, headers: MetadataMap) -> Result<Self> {
        let attributes = vec![
            KeyValue::text("service.name", &settings.service_name),
            KeyValue::text("service.version", VERSION),
            KeyValue::text("service.instance.id", &uuid::Uuid::new_v4().to_string()),
        ];
        let grpc = Grpc::new(channel(settings)?).max_decoding_message_size(ANSWER_BYTES);
        Ok(Self { grpc, headers, resource: Resource { attributes } })
    }

    /// Sends spans, and tells what of them was refused.
    ///
    /// # Errors
    /// The reason why nothing was taken.
    pub(super) async fn export(&mut self, spans: Vec<Span>) -> Result<Option<Refused>, String> {
        self.grpc.ready().await.map_err(|error| reason(&error))?;
        let scope = InstrumentationScope { name: "bowshot".to_owned(), version: VERSION.to_owned() };
        let of_process = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
        };
        let mut request = Request::new(ExportTraceServiceRequest { resource_spans: vec![of_process] });
        *request.metadata_mut() = self.headers.clone();
        let codec = ProstCodec::<_, ExportTraceServiceResponse>::default();
        let answered = self.grpc.unary(request, PathAndQuery::from_static(EXPORT), codec).await;
        let answer = answered.map_err(|status| reason(&status))?.into_inner();
        let partly = answer.partial_success.filter(|partly| partly.rejected_spans > 0);
        Ok(partly.map(|partly| Refused {
            spans: u64::try_from(partly.rejected_spans).unwrap_or_default(),
            reason: short(&partly.error_message),
        }))
    }
}

/// Headers as they are sent, and shown nowhere.
pub(super) fn metadata(headers: Vec<(String, String)>) -> Result<MetadataMap, Usage> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refuse = || Usage::new(format!("the header `{name}` of `traces.headers_file` cannot be sent"));
        let mut value = HeaderValue::from_str(&value).map_err(|_| refuse())?;
        value.set_sensitive(true);
        map.append(HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?, value);
    }
    Ok(MetadataMap::from_headers(map))
}

fn channel(settings: &TraceSettings) -> Result<Channel> {
    let address = settings.address().context("`traces.endpoint` is not a valid address")?;
    // Tonic knows nothing of the encryption, which is the connector's.
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .user_agent(concat!("bowshot/", env!("CARGO_PKG_VERSION")))?
        .connect_timeout(settings.timeout)
        .timeout(settings.timeout)
        .http2_keep_alive_interval(ASKED_EVERY)
        .keep_alive_timeout(settings.timeout)
        .tcp_nodelay(true);
    if !settings.is_encrypted() {
        return Ok(endpoint.connect_lazy());
    }
    let tls = bowshot_access::outgoing_tls(settings.ca_file.as_deref());
    let mut tls = tls.map_err(|reason| anyhow::anyhow!("`traces`: {reason}"))?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let tls = TlsConnector::from(Arc::new(tls));
    let connect = tower::service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move { connect(&tls, &uri).await.map(TokioIo::new) }
    });
    Ok(endpoint.origin(format!("https://{address}").parse()?).connect_with_connector_lazy(connect))
}

async fn connect(tls: &TlsConnector, uri: &Uri) -> io::Result<TlsStream<TcpStream>> {
    // IPv6 addresses stand in brackets.
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or_default())).await?;
    stream.set_nodelay(true)?;
    tls.connect(name, stream).await
}

/// What went wrong, with its causes: the first one often says no more than that it did.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    short(&texts.join(": "))
}

fn short(text: &str) -> String {
    text.chars().take(REASON_LENGTH).collect()
}
