"""The weights of features, of definitions and contents; written by ``tools/fit_instruction_weights.py``.

Each line has a weight and the features that have it, two spaces between them.
"""

from typing import Final

DEFINITIONS: Final = """
-0.193  "
-0.192  #first #talk
-0.185  #first #model
-0.182  e g
-0.174  #care
-0.173  by .. user
-0.17  ^
-0.167  #first #secret  ^ alway  an
-0.166  do not
-0.163  #identifier #in text
-0.158  #in text #open
-0.154  eine
-0.153  personal data
-0.152  such as
-0.15  #known model  #use #user
-0.146  to .. to
-0.144  pass
-0.143  #no #personal  such
-0.139  #in text #known secret  permission .. the
-0.138  can
-0.137  the server
-0.136  #in text #no  a note
-0.132  #obey #you  ^ prefer
-0.131  mention .. user
-0.13  #about #first  #known secret  #obey #telling prior  {
-0.129  other tool
-0.128  #model #telling prior  http .. com
-0.127  #open #user  x0 .. 0
-0.126  error  or
-0.125  #form #in text  before
-0.123  empty  unless
-0.122  be .. in
-0.12  #care #in text  prefer  use
-0.119  #in parameter #returns  you .. a
-0.117  #first #give  #known thing  service  sign
-0.116  #care #secret  #their #trigger  add  cannot  mention .. the
-0.115  get the  include
-0.114  #in parameter #trigger  attempt
-0.113  customer  the .. get  valu
-0.112  page  using  write
-0.111  example :  tell .. user
-0.11  ` x0  call this  com  }
-0.109  #give #obey  step
-0.108  0
-0.107  #in text #known model  when you
-0.106  before you
-0.105  #first #obey  ^ use  mcp  my  per
-0.104  #about  #model #user  character  once  the tool
-0.103  #form  header
-0.102  #no #secret  #obey #thing  get
-0.101  #divert #in parameter  #their #use  ^ `  can't  stop
-0.1  #before #identifier  did  tool of
-0.099  : 0  ^ example  x0 `
-0.098  action
-0.097  #in text #known thing  and .. a  com /  of .. server  this .. user
-0.096  #open #telling rules  data  see http  task
-0.095  #consent #user  ^ pass  are  g  information  thread
-0.094  #bias  #forced #say  #returns #secret  a .. on  object  prefer .. over  tell  uses
-0.093  a .. in  for the  role
-0.092  #first #their  ^ show  e mail  stag  support  use .. tool  مع
-0.091  #about #telling rules  #office #telling rules  : '  bitte  case  to .. id
-0.09  #excuse #telling prior  #first #harm  #returns #their  no .. the  prompt .. the
-0.089  git  match .. the  of .. as  of .. to  one  only .. the  organization  respect
-0.088  #before #open  #first #office  ' ignore  0 :  previou
-0.087  #first #personal  #give #telling ignore  ^ "  be  only  sign in  verify  width
-0.086  #consent #duty  #known obey  #open #talk  ' '  ^ system  a .. a  allow  an .. a  current  runs  the chart  zero
-0.085  #divert #say  #first #user  exampl  name of  sent
-0.084  #excuse #first  ^ set  event  must  requir  set  start
-0.083  #before #in text  #in parameter  #known user  a  after  as .. x0
-0.082  #in parameter #quoted  a message  after the  content .. a  exact  keys  request to
-0.081  #before #consent  #in text #known user  : `  edit  pass .. the  plain  search
-0.08  #discredit #use  #returns #say  ^ url  is sent  password  see  that .. user  uma  with .. name  yaml
-0.079  " "  #known use  ^ the  ` curl  not  system  text as
-0.078  #first #param  #form #identifier  #in text #known use  #in text #take  ^ run  creat  element  log  not .. to  of .. conversation  one .. the  record  release  unless the  up the  within
-0.077  #form #personal  #in output  #rank #telling prior  ^ emite  command  del  emite  script  specific  with .. only
-0.076  #ask #user  #no #returns  ^ path  ^ support  a .. before  application  benutzer  config  secret
-0.075  the server'
-0.074  #address #secret  #consent #take  : "  already  list  you must
-0.073  #about #telling file  a password  before .. it  hello  to read  two number
-0.072  #form #secret  #identifier #please  ^ call  ^ check  conversation  short  single  una  updat  user has
-0.071  #about #you  #in text #not harm  #obey #returns  ^ data  ^ start  ^ whether  asks the  consulta  dem .. muss  encod .. the  know  like  path  that the  कष
-0.07  #address #in parameter  ^ requir  call .. the  file to  search the  syntax  this conversation
-0.069  #no #not harm  #not harm  #office #telling prompt  / ssh  before .. tool  language  relevant
-0.068  #consent #form  #in text #use  #own parameter #telling ignore  #returns #self  #returns #thing  / docs  app  bot  chang  enough  model  parameter  read the  reset  resource  return .. of  the page
-0.067  ^ print  caller  is .. is  post  «  »
-0.066  #in parameter #own parameter  #known talk  a .. or  alway  are kept  change  if .. is  muss der  omitt  other .. of  out .. and  resourc  return .. as  show .. of  text .. a  than  tool .. server  tool .. this
-0.065  #form #telling prior  #no #telling rules  ^ return  as .. or  bank app  between .. and  call .. first  decod  read .. before  so .. the  user for
-0.064  #identifier #no  #known user #use  ^ '  ^ ask  ^ create  ^ query  ^ translate  ^ vor  how  iso  need the  or a  out  vor dem  x0 .. for
-0.063  #in parameter #known thing  by the  extract  ignor  notification  support .. and  tell .. to  to .. file  to an
-0.062  #forced #trigger  #talk #telling rules  #trigger #you  ^ hidden  ^ secret  ` `  ` and  in .. app  in the  nur  return by  to .. for  use .. for  user agent
-0.061  #form #trigger  #known self #telling rules  #then #use  between  if  read .. of  relat  this server  ticket  where  xml
-0.06  #first #rank  #in parameter #known secret  #not say #trigger  #office #returns  are .. from  cannot be  graph  into  redact  so .. you  the .. fail  toujour  x
-0.059  #secret #talk  den  file .. a  for  is .. the  is written  of .. in
-0.058  " :  #every #take  #first #thing  an image  beginn of  call .. before  not .. them  on .. for  the .. if  the .. url  to .. it  to .. or  use this
-0.057  #ask #first  #care #not use  #every #telling prior  #in text #secret  #rank #telling ignore  #secret #silent  = 0  a .. as  a .. its  collection  create a  for .. with  of .. page  think  to the
-0.056  #before #telling ignore  #first #take  chart .. an  contain  execut  invent  of .. or  overrid  record .. the  remov  set the  should be  test  url .. the  who  x0 .. hello
-0.055  #known use #user  #no #telling prior  adds .. number  as .. and  cross  dem  project  the .. current
-0.054  #before #known thing  #in text  #telling ignore #trigger  ^ adds  a .. so  against  as data  be .. 0  install  provide  queri  run .. on  sentry  usuario  whether to
-0.053  #ask #returns  #in text #known talk  #known thing #model  / www  a .. against  a .. and  cursor  default to  if a  mail  muss  text .. is  the .. agent  when .. a  www
-0.052  #excuse #returns  #first #form  #in text #not give  #in text #not obey  #no #not obey  #no #others  #not obey  #param #trigger  ^ each  ^ execute  ^ password  als  file  for example  name .. the  personal  schema  send .. mail  tabl  the .. cannot  titl
-0.051  #returns #talk  / config  can be  chang .. the  check .. the  endpoint  fiscal  in .. file  pas  stay  to .. default  upload a  use .. or  user .. a
-0.05  #about #param  #divert #give  #form #param  #known thing #telling ignore  #returns #whole  compare  must .. with  on .. the  request .. with  this .. a  user .. in  what to  ह
-0.049  #about #self  #give #thing  #in parameter #known model  #param #use  ' or  ^ read  ^ review  a new  another  ask .. user  generat .. password  in .. so  on a  one time  process  style  text :  the project  the url  version
-0.048  #about #secret  #no #whole  as .. not  instead  pull request  the .. configur  the .. default  the .. has  to .. in  user .. for  user .. this
-0.047  #address #in label  #in parameter #param  ^ decod  before .. other  bucket  city  docker  encod  must be  only .. user  own  search for  show .. a  stor .. the  the .. any  to .. model  trace
-0.046  #care #thing  #give #telling file  #identifier #thing  #no #telling ignore  : /  a .. user  a pull  at .. of  back  browser  example com  for password  job  logg  on .. and  ssh /  the .. after  the .. graph  use .. when  vat  with a
-0.045  #form #telling ignore  #returns #silent  :  a .. message  analysi  commit  find the  issu  of .. from  org /  prompt injection  return .. 0  this .. by  title  typed  user and  whether  you can
-0.044  #consent #first  #duty #returns  #first #self  #first #telling prior  #form #not use  #office #take  #quoted #use  of .. name  plac  private  rather  rather than  sent to  with .. user
-0.043  #every #office  #form #give  #form #telling rules  #give #harm  #in parameter #known use  #please #use  #quoted #you  #take #telling rules  : http  ^ fetch  generate  key is  list the  pull  the .. ssh  the .. unless  the chat  the new
-0.042  #excuse #form  #identifier #purpose  #quoted #returns  #returns #take  #take #telling file  a .. for  when .. are
-0.041  #consent #thing  #no #obey  #open #trigger  #returns #you  #talk #user  : [  : no  ^ take  ask the  click  configur  for .. the  is .. from  maximum  open  password or  upload .. file  use .. you  weather .. city  त
-0.04  #about #returns  #before #use  #care #user  #duty #silent  #model #telling rules  #telling ignore #thing  ante de  any .. this  as x0  enter  it in  messag  path to  several  stor in  take  the current  to .. only  use .. before  with `
-0.039  #about #take  #about #thing  #ask #open  #first #you  #in text #thing  ^ get  ^ store  a .. that  add a  description .. the  directly  exist  save  the .. never  the recipient
-0.038  #divert  #obey #telling rules  #personal #silent  ^ write  is .. server  precedence over  this is  “
-0.037  #known use #trigger  #talk #their  ^ repository  do .. use  is return  isn't  it as  not .. or  not use  page .. the  provid  repository name  that you  to .. before  variabl
-0.036  #before #care  #no #self  #open #say  #param #thing  #telling rules #thing  ^ credential  ^ scan  a .. without  byte  connect to  documentation  fetch  or .. are  read .. the  response  type  user .. and
-0.035  #care #no  #duty #you  #first #no  and is  convert  first and  get a  is .. not  javascript  of this  text
-0.034  #first #say  #in text #purpose  #purpose #use  #returns #use  access .. the  duration  kubeconfig  path .. file  secret .. the  the .. by  the test  time .. the  user .. to
-0.033  #care #duty  #consent #every  #duty #known thing  a .. with  a user  and  as .. for  clear  e .. address  org  send an  stor a  the .. of  what .. user
-0.032  #consent #their  #returns  ^ upload  ` as  all .. a  describe  email  ids  instruction  les  set .. of  to .. repository  { "
-0.031  #personal #returns  #purpose  /  ^ only  account  and .. 0  format code  need .. the  never  new  of an  only .. allow  place  summary  take precedence  the .. environment  when .. in
-0.03  #before #you  #care #give  #care #known thing  alert  credential .. the  detail  don't .. the  it .. and  or .. from  the .. page  the id  tool for
-0.029  #take #telling prior  ^ add  ^ name  a single  a specific  before .. to  docs  keyword  miss  participant  the .. command  unless .. is  written
-0.028  #care #consent  #care #open  #give #param  #in value  #model #use  ^ output  a .. question  an .. request  based  fact  http .. org  in .. format  instead of  number .. 0  of .. of  the .. should  to return  use it
-0.027  #before #quoted  #no #thing  #take #telling reset  ^ all  a .. to  asks  chat  confirm  mail address  need .. of  of .. it  on .. page  pdf  runs .. of  system prompt  will be
-0.026  #every #obey  #identifier #in parameter  #known thing #no  ^ don't  ^ if  ^ open  before `  knowledge  path .. the  precedence  query  return  the .. must  whenever  x0 .. and
-0.025  #before #purpose  #say #secret  #telling prior #use  ^ list  and x0  connect  default  for a  knowledge graph  open a  outside  source  the .. policy  unless .. user  you
-0.024  #first #then  : use  ^ extract  ^ include  for this  one of  return .. with  the .. file  the connect  translate  when  work  x0 :  必
-0.023  #about #model  #care #form  #every #in text  #in parameter #silent  #office #talk  #rank #take  ^ http  ^ result  a .. repository  a .. time  a github  as .. are  by id  client .. the  form  github repository  specifi  to .. of
-0.022  #every #talk  #first #whole  #form #office  #identifier #use  #known take #use  #param  / id  ^ appli  ^ generate  ^ gets  discover  the .. asked  treat  up to
-0.021  #duty #thing  #form #known use  #open  #secret #then  0 `  b  ignore  it for  take a  tool when  use .. user
-0.02  #every #say  #excuse #use  #in text #known give  #model #returns  / /  a .. id  at  contain the  done  grep  in .. by  key .. the  name  never .. the  show the  the .. says  then
-0.019  #about #talk  #divert #thing  #in text #whole  address  an http  the query  they .. it  uses the
-0.018  a .. agent  each  of .. query  private key  sms  that .. in
-0.017  #consent  #first #silent  #first #use  #form #no  #open #secret  ^ what  a .. the  alway .. the  for .. and  injection  the .. first  the .. point  use .. the
-0.016  #ask #trigger  #before #silent  #before #user  #every #returns  #in parameter #known obey  #in text #known personal  #known secret #no  #own parameter #then  #thing #whole  = "  ^ no  complete  don't  id  must .. the  the .. each  the .. itself
-0.015  #harm #say  #self #use  #telling unasked #user  ^ search  full .. of  should .. the  that is
-0.014  #divert #trigger  against the  description  handle  run the  the .. one  token .. the
-0.013  #give #you  #others #telling others  #quoted  all  and .. to  content .. file  show  user  when a
-0.012  #in text #returns  #personal #secret  are .. to  el  run  stor  time
-0.011  #take #use  #then #you  0 character  is set  mcp server  optional  the text  the value
-0.01  #consent #in text  #every #quoted  #form #returns  appli  default is  notion  the .. token  to 0
-0.009  #before #duty  #divert #use  #duty #no  #in text #known take  access  find .. a  other .. this  result .. the
-0.008  #every #others  #give #known thing  #personal #user  #telling prior  #thing #trigger  ignore .. instruction  made  prompt  scan  should  the .. it  with
-0.007  #forced  #identifier #take  #param #telling file  #quoted #telling prior  #talk #then  '  0 .. request  a .. of  and return  are not  list of  mention  the .. app  to a
-0.006  #rank #returns  and .. as  get .. a  important  list .. the  wrong
-0.005  #first #telling file  #self #thing  #telling quiet #user  #trigger  adds  and .. at  the .. to  the plan  unit
-0.004  #form #harm  #give #own parameter  #telling rules #you  ` in  in .. to  this .. to  what the
-0.003  " }  #excuse #then  #give #no  #in parameter #telling file  #known take  #secret #trigger  #silent #telling prior  #thing #user  do .. this  http  the .. with
-0.002  #duty #quoted  #harm #no  #self  ^ file  second  the .. for  you need
-0.001  #obey #user  / aws  a .. e  node  output  use `
0.001  #about #harm  #every #open  #no #not give  #not give  #say #telling prior  |
0.002  #excuse #user  #form #take  ^ send  use .. to
0.003  #duty #use  #not give #user  #not say #user  and .. for  do .. the  from the  is  the .. text
0.004  #every #first  #form #model  from  of .. the  search .. the
0.005  #duty #whole  #form #in parameter  ^ full
0.006  #about #in text  #form #obey  #give #take  #obey #use  #own parameter #say  #telling file #use  #trigger #use  #use #you  card  sets
0.007  #no #their  #say #you  das  includ  so that  that .. to
0.008  #form #self  #others #trigger  #say  #say #then  entiti  find  input  when .. is
0.009  #about #every  #duty #their  #model #self  ^ creat  branch  is .. for
0.01  #address #use  #telling file #telling prior  is kept  now  the .. its  the .. the  x0 .. the
0.011  #consent #quoted  #in text #self  #model #office  [  ^ find  de  is .. to  not tell  session  suggest  warning
0.012  #every #give  #excuse #in text  #give #in text  #in parameter #user  #then #whole  ^ it  or .. the  term
0.013  #every #self  #excuse #thing  #identifier #model  #known take #user  #no  #param #secret  which
0.014  #before #every  #in parameter #telling prior  #model #personal  are .. in  would
0.015  #duty  #model #param  #own parameter #trigger  #param #then  instruction .. the  request
0.016  #excuse #own parameter  #give #their  #in text #please  #returns #telling file  #take #whole  ask  do  environment  the user
0.017  #give #returns  #others #thing  #use  ^ 0  also .. the  delet  target  to .. the
0.018  #ask #in text  #identifier #returns  #others #secret  #own parameter  #take #thing  ^ before  ` tool  by .. the  check
0.019  #first #telling ignore  #in parameter #thing  #others #use  #telling others #thing  do .. tell  patient  safe
0.02  #duty #user  #forced #give  #telling ignore  en  model :  to
0.021  #before  #duty #own parameter  #in text #telling harm  #lasting  a repository  copy  noth  put  team  that .. be  the same  this session
0.022  #before #others  #personal #talk  #telling ignore #telling prompt  #telling prompt  human  if the  imag  inspect  newest  to .. a
0.023  #about #trigger  have  is .. in  list .. in  run .. the
0.024  #in text #trigger  #known personal  #silent  as .. of  in `  not .. for  ssh .. rsa  the last  you .. the
0.025  #model #whole  flag  id rsa  rsa  text to  the .. argument  with .. for
0.026  #consent #open  #duty #telling others  #every #param  #every #telling others  #office #thing  #say #thing  #self #whole  aws  base  context  generat  github  latest  of .. session  read a  repository  send a  their
0.027  #in text #you  #please  #secret #telling prior  download  of .. are  the .. all  the model  value
0.028  #divert #known thing  #excuse  #harm #in text  #in text #their  #in text #then  #own parameter #take  are .. as  same
0.029  #give #in parameter  #no #office  #no #telling unasked  #talk #trigger  store
0.03  #divert #identifier  #harm #talk  #office #whole  / x0  do .. for  env  of .. is  the user'  user'  while
0.031  #every #telling file  #in text #not use  #secret #their  content .. the  content from  in  need  order  other .. tool  room  the .. this  without
0.032  #about #give  #about #known give  #every #you  #in text #user  #known give #use  #rank  ^ inspect  explicitly  format  send  the .. line  your
0.033  #about #open  #before #talk  #first #others  #in parameter #office  #take  ^ format  consider  the `  to run
0.034  #discredit #no  #model #secret  #office #trigger  #own parameter #thing  afterward  all .. the  and .. have  and .. the  aws /  belong  password .. the  return a  table  to it  what  window
0.035  #before #telling prior  #duty #trigger  #in text #talk  #no #trigger  ^ number  and pass  cloud  it is  the .. messag  the latest  up a
0.036  #before #not take  #duty #others  #harm #obey  #in text #personal  #in text #telling title  #office #others  #office #their  #self #telling reset  0 .. of  api  appear  before the  find a  in .. x0  please  session .. the  with .. it
0.037  #address #talk  #first #open  as .. the  machine  the other
0.038  #address #excuse  #ask #telling ask  #known give  #open #telling ask  #then  and .. x0  first  github token  kindly  owner  read  right  übergeben
0.039  #about #excuse  #ask #telling prior  #give #telling others  #in parameter #whole  #open #telling prior  #own parameter #telling file  #take #user  a date  expression  gather  in a  it .. that  people  search .. in  share  writ
0.04  #address #trigger  #consent #trigger  #divert #others  #identifier #known give  #no #not use  #not use  #secret #use  #secret #you  a .. query  asking  document  each .. the  for .. before  ist  package  the .. return  the .. you  the person
0.041  #ask #in parameter  #duty #telling keep  #give #please  #identifier #others  #in text #telling models  #obey #say  #others #own name  #telling others #trigger  #their #thing  ^ in  a text  approval  evaluat  label  last  of .. other  profile  that  the .. request  to .. with
0.042  #address #before  #every #known give  #in text #telling others  #lasting #thing  #no #open  #own parameter #secret  and .. by  are .. by  cdn  it .. the  line .. the  send .. the  which the  with .. in
0.043  #address #identifier  #before #say  #duty #forced  #in text #lasting  #known give #user  #own parameter #please  #take #you  0 and  >  ^ any  a question  added  best  both  cooki  dies  of .. has  other  present  the  the .. chart  user explicitly  with .. to
0.044  #before #telling quiet  #consent #telling agreed  #form #own parameter  #give #model  #give #telling quiet  #known thing #telling prior  #thing #use  #trigger #user  a file  as .. in  be .. as  etc /  http .. 0  is .. with  namespace  the .. explicitly  the .. like  tool `  up  what .. the  with it
0.045  #before #telling file  #duty #model  #form #quoted  #give #quoted  #give #telling prior  #harm #personal  #identifier #obey  #in parameter #no  ^ a  chart .. is  decode .. follow  for all  home  list .. of  pem  to .. 0  you .. and
0.046  #known thing #user  #no #you  #not give #open  ^ [  call .. and  need to  side  text .. the  the .. most  the .. store  the .. that  this tool  those .. the  with .. of  word .. the  zu übergeben
0.047  #before #secret  #duty #obey  #give #office  #give #silent  #in text #quoted  #office #telling title  #others #you  #personal #use  #talk #telling prior  #telling prior #trigger  #telling title  ?  ^ your  hint  notice  text of  the .. them  were
0.048  #about #address  #about #duty  #duty #identifier  #excuse #telling rules  #harm #use  #in parameter #obey  #known thing #talk  #model #telling models  and .. one  built in  confirmation  from .. and  hex  holiday  in .. repository  it  part of  public holiday  the .. export  the line  ~ /  и
0.049  #before #trigger  #every #thing  #forced #take  #self #telling ignore  ^ generat  ^ public  and .. it  does  instruction and  region  tax  the .. owner  the .. server
0.05  #every #excuse  #form #whole  #known thing #take  #known thing #trigger  #open #use  #talk #use  metric  photo  question  until  ~
0.051  #consent #give  #excuse #give  #give #others  #harm  #in parameter #please  #model #rank  #telling harm #user  #trigger #whole  ^ optional  agre  archive  attach  call  eht dnes  evil test  forward the  http .. test  of .. team  word
0.052  #param #take  / etc  ^ make  ^ to  and .. of  code in  do .. user  generat a  its  non  on .. it  rate  the .. up  use .. as
0.053  #consent #obey  #duty #talk  #in value #whole  #lasting #use  #telling file #then  #telling prompt #you  a .. do  for .. a  home directory  hook  of .. call  para  the .. read
0.054  #divert #every  #every #own name  #identifier #trigger  #office #user  #telling models  answer  as .. e  delete  hand .. the  http :  in .. time  line  list .. and  message .. of  or .. to  seed  the .. address  the .. x0  their .. and  this  to .. them  use .. and
0.055  #ask #form  #give #secret  #others #talk  #telling rules #whole  bank  be .. to  compar two  eht .. eht  emoji  info  obey  prompt for  replac  tool .. is  with the  في
0.056  #care #telling others  #discredit #others  #give #trigger  #harm #please  #in text #telling rules  #no #take  #silent #telling keep  but  internal  is to  message .. to
0.057  #before #own name  #identifier #secret  #thing  and .. on  from .. the  need .. be  packag  star  the .. session  the .. so  true
0.058  #duty #give  #every #in parameter  #in parameter #model  #own name #returns  0 .. are  every  from .. text  http .. example  make  name are  of .. a  of .. repository  of ~  permission  up .. 0  when .. the
0.059  #before #known give  #every #model  #every #rank  #identifier #then  #in text #office  #known thing #personal  #not use #telling prior  #office #telling prior  #telling agreed  #then #thing  : x0  away  etc  image  number  otherwise  pods  with .. and
0.06  #address #duty  #duty #every  #duty #secret  #in text #silent  is .. as  it .. in  quality  reason  station  the .. but  the .. from  to .. so  told  word in
0.061  #model #quoted  #no #telling keep  #no #then  #own parameter #talk  #quoted #user  #their #user  ^ do  ^ when  count  list .. tool  may be  stat  submit  sync  wallet  with .. true  x0 .. x0
0.062  #before #please  #divert #you  #every #form  #no #own parameter  #please #take  #say #trigger  #telling unasked  and .. what  code  file .. read  has .. to  it .. as  its .. to  radio  recommend  register  sans  sh  shell  so .. can  the .. server'  them as
0.063  #duty #harm  #in parameter #use  #in text #telling obey  #in text #telling prompt  #no #not take  #not take  #please #say  <  e envie  filesystem  from .. server  im  is a  setting  what it
0.064  #duty #office  #give #user  #open #then  #silent #trigger  ? d  built  d =  desk  it has  multiple .. a  to this  tool is  trust
0.065  #discredit  #harm #in parameter  #quoted #telling others  / ?  ^ stor  a team  and .. list  da  five  for .. to  in .. of  it to  list .. request  present .. the  the .. work  you were
0.066  #before #their  #consent #telling harm  #give #personal  #in text #telling reset  #own parameter #returns  #param #whole  #telling others #you  #user #you  / credential  ^ non  is .. and  the content  the conversation
0.067  #in text #own name  #known thing #own parameter  #own name  #telling others  figur  runs .. query  sh |  ten  x0 [
0.068  #care #returns  #form #you  #their  0 0  a namespace  from .. to  if .. the  reply  when the  why
0.069  #discredit #telling others  #form #thing  #in text #not say  #not say #silent  #personal #their  #quoted #then  #telling ignore #user  ^ as  ^ where  for .. 0  its .. is  list .. namespace  mail .. and  mirror  previou .. the
0.07  #every #known take  #identifier #telling prior  #in text #own parameter  #no #not say  #not say  #others #returns  #telling prior #whole  #telling reset  and .. be  and .. them  direction  du  letter  named  pdfs  the .. tool  the repository  to .. as  too
0.071  #before #returns  #give #identifier  #harm #office  #in text #telling keep  #telling obey #user  #whole  ^ first  dnes  example  merg pdfs
0.072  #before #obey  #known give #then  #own name #trigger  #personal #trigger  #telling ignore #telling prior  preview  reviewer  tag  the .. your
0.073  #give #talk  #telling others #use  #then #trigger  ^ target  a .. request  by .. date  dans  if .. asks  of  of a  setup  shell .. the
0.074  #address #known give  #in parameter #open  #model #thing  #their #then  drop  example /  in .. and  limit  list pods  of .. by  pick  pods .. a  server  the .. were  this .. as  und  छल  छल .. द  द श  प छल  श
0.075  #consent #silent  #duty #excuse  #duty #self  #form #user  a .. by  assistant .. the  is not  it .. not  pend  the .. and  the .. left  to .. example
0.076  and .. not  hold the
0.077  #telling harm  a project  all tool  bash  current .. in  even .. the  of `  payment  pods .. namespace  sort by  the owner  this one  with .. the
0.078  #in text #param  #telling harm #then  a document  does not  is .. be  prior to  the .. time  this .. is  to http
0.079  #ask #give  #own parameter #whole  = =  as .. to  current .. a  extra  on  order is  that .. was
0.08  #before #param  #divert #in text  ^ ignore  branch .. a  branch .. repository  if .. user  json  the assistant
0.081  #about #then  #address #every  #address #quoted  #address #then  #first #returns  #lasting #secret  #model #own parameter  0 .. x0  =  come  has  of .. tool
0.082  #duty #take  #excuse #secret  #in text #telling later  #in text #telling unasked  be .. the  by .. of  decode and  it with  sort  to .. by  tool as  you .. for  не  об  об этом  этом
0.083  #give #known take  #harm #trigger  #known thing #use  #talk  conversa  it .. it  it .. to
0.084  #self #you  ^ keep  compar  count word  country  force  nc  report  school  slow
0.085  #own parameter #personal  #own parameter #telling prior  #user  0 .. the  as .. a  it .. be  known
0.086  #telling prompt #whole  even when  is .. its
0.087  #  #office #then  0 /  by .. this  list .. a  openai  point .. or  request of  return .. in
0.088  #before #harm  #duty #telling prior  #identifier #user  #in parameter #others  #in value #thing  #user #whole  0 .. to  by .. or  call .. with  choice  collect  e  font  helper  the .. mcp  with .. or
0.089  #consent #harm  #no #say  #personal #take  #telling role #you  department  dna  speak .. text  speak a  the .. their  à
0.09  #duty #rank  #telling agreed #user  about  connector  recovery  the .. connector
0.091  #before #whole  #discredit #in text  #divert #user  #talk #whole  answer .. the  the .. in  the .. prompt  the password
0.092  #duty #telling file  #every #use  #open #silent  #returns #telling others  #telling obey  [ x0  a chart  been  host  partner  phase  send .. request  the .. data
0.093  #address #harm  #known personal #take  begin  by  converter  evil  found  incl  the .. as  use the  y
0.094  #own parameter #use  #telling reset #telling rules  box  in this  leak  search code  senha  way
0.095  #forced #use  count .. a  rate limit  them .. the
0.096  #no #quoted  #telling prior #telling reset  enc  gb  powershell  report .. of  with .. tool
0.097  #in parameter #you  #in text #telling file  ^ with  clos  found in  gb gur  head  not be  the .. is
0.098  #before #personal  #identifier #quoted  #obey #please  #rank #user  #telling prior #user  as  they  time .. a  you have
0.099  #before #in parameter  #form #in value  #others  #personal #you  #self #telling prior  auch  ip  shown
0.1  #excuse #in parameter  #identifier #in value  #no #telling quiet  #telling role  #use #whole  gur .. gur  in .. is  these  x0 x0
0.101  #before #model  #consent #say  #in value #secret  #no #use  #open #their  ^ count  are .. and  content of  enc x0  has been  so
0.102  #known user #open  #obey  ^ speak  full  speak
0.103  #harm #model  #telling prior #telling rules  #then #user  lo
0.104  #first  #own name #use  are .. be  even  open .. the
0.105  #own parameter #user  0 x0  ^ #  due  need not  of 0  out .. the  part  reference
0.106  #in text #say  #in text #telling role  ^ merg  assistant
0.107  #in text #rank  ^ compar  apply  the .. are  this .. are
0.108  #address #in value  #consent #model  #give #use  #model #take  ^ other  daer
0.109  ^ pod  and the  la  read .. file  they are
0.11  #model #no  are to  das .. der  hold  turn
0.111  #obey #then  #telling file #thing  #telling marker  #you  found .. the  tail
0.113  #give #in value
0.114  #identifier #telling others  merg  naq .. gur  them
0.115  #consent #telling unasked  elif
0.116  #in parameter #their  #no #user  #secret  #secret #take  lla
0.117  #identifier #whole
0.118  : the  car  texto
0.119  #give  #known give #take  #telling rules  ^ tail  take the
0.12  public  us
0.121  #in text #telling quiet  code .. the
0.122  #every  #personal  `  and .. name  not .. user
0.123  #no #silent  ssh
0.124  #telling file  #telling ignore #telling rules  #telling quiet  x0 =
0.126  *
0.127  #in parameter #take  choose
0.128  c  decode  no .. and  o
0.13  #first #identifier  #model #trigger  #secret #telling file  ^ image  and .. is  der  in .. the  this .. the
0.131  d  those  value of
0.133  also
0.135  #address #in text  #model
0.136  @  along
0.137  #before #thing
0.138  0 .. 0
0.139  #address  #in parameter #personal
0.14  keep  que  t  x0
0.141  #consent #no  chart  入
0.142  #model #then
0.143  des  tool
0.146  #give #then  #secret #thing  to .. user
0.147  #in text #obey  whatever
0.148  was
0.15  #silent #user
0.151  #give #known personal  here
0.155  net
0.156  #address #give
0.158  naq  under
0.159  i
0.161  #telling keep
0.162  ^ <
0.163  zu
0.165  prior  weather
0.166  our
0.167  find .. by
0.171  #every #identifier  #in parameter #secret
0.173  、
0.175  to be
0.177  #every #secret
0.178  return .. time
0.181  # 0  0 #
0.182  note
0.193  #in text #model
0.197  ^ x0
0.222  get weather
0.251  #in parameter #talk
0.352  eht
"""

CONTENTS: Final = """
-0.254  server
-0.238  #model #self
-0.226  #no #secret
-0.221  commit
-0.214  ^
-0.197  someth
-0.195  ^ we
-0.194  ignore
-0.191  " ignore  minut
-0.174  a
-0.172  data
-0.168  forward
-0.165  ^ agent  http .. com
-0.164  script
-0.161  least
-0.157  #rank #telling ignore
-0.156  type
-0.155  it to  wie
-0.154  it .. to  override
-0.153  the agent
-0.15  #care  #form  #take  is the  sie
-0.147  says  user "
-0.145  : `  letter
-0.144  credential  team
-0.143  x0 :
-0.142  #please #secret  there  why
-0.14  #duty #trigger
-0.139  #no #please
-0.138  an
-0.137  html
-0.136  ^ note  text .. a  the .. contain
-0.135  model  read it
-0.134  #use  ^ ask  poison  send .. to  x0 /
-0.133  #duty #user  #form #telling ignore  ?
-0.131  ^ add  asks .. the  com /  how  use
-0.13  "  io /
-0.129  question .. the
-0.128  #personal #self  the assistant
-0.127  on .. and  red  sent
-0.125  contain  to .. to
-0.124  docs  ssh
-0.123  send  three
-0.122  previou  we
-0.121  ignore previou  local  note :  npm  or
-0.12  #before #user  not
-0.119  image
-0.118  #form #telling rules
-0.117  #harm #self  #no  ask for
-0.116  a .. the  sobre  स
-0.114  #in arguments  0 .. read  hash
-0.113  #duty #no  * *  such
-0.112  ^ the  ^ you
-0.111  #forced #trigger  ^ researcher  high  may
-0.11  only .. 0  。
-0.109  #model #telling rules  ^ assert  ai assistant  and this  assert  if
-0.108  hr  the right  you .. assistant
-0.107  @ example  bar
-0.106  #personal #telling rules  ^ def  a .. do  def  guard  you .. a
-0.105  #care #thing  #then #user  world  “
-0.104  " you  #no #not use  #not use  can  in
-0.103  #before #use  certificate  injection  todo
-0.102  friday  guide  light  را
-0.101  #telling ignore #trigger  date  no .. of
-0.1  " it  #no #quoted  #take #telling rules  block  to .. a
-0.099  earlier  example com  for a  ignor
-0.098  nobody  node  the new  x0 [
-0.097  id .. x0  it and  jobs  using  wrote
-0.096  < !  ^ la  http .. lumenwork  once  please .. this
-0.095  : "  ^ only  dev
-0.094  #about #telling rules  #model #thing  agent  ask  one is  source  tell  the letter
-0.093  flag  web
-0.092  #office #telling prompt  prompt  the .. mail  untrust  valid
-0.091  ^ die  ^ never  man  to .. that
-0.09  #say #telling ignore  ^ and  character  el  in .. text
-0.089  ^ ssh  api key  command  file .. 0  horn example  mcp  text
-0.088  #self #user  #telling prompt #user  parcel  the .. them  web page
-0.087  0  @ horn  ^ '  all previou  attempt  github  instruction "  mail  researcher  sk
-0.086  #obey #telling ignore  #telling rules #user  a un  before  is no  twice
-0.085  #office #self  #self #telling rules  agent .. and  fixed  used
-0.084  #give #telling reset  #telling file #telling prior  a .. http  going  it .. a  pytest  system .. 0
-0.083  d  vault  your .. and
-0.082  #office #telling rules  are .. the  as well  just  reach  system .. a  و
-0.081  #bias  #please #telling ignore  : a  ^ run  agent .. call  http .. sh  password =  the .. before  前
-0.08  #about #address  #talk  by a  las .. en  please .. your
-0.079  #give #open  #telling keep #then  ' ignore  august  id =  localhost  to .. com  入
-0.078  #give  #no #telling prior  #param  0 .. for  ^ expect  external  filter  google  hi  ignore .. and
-0.077  #form #silent  #model #talk  http .. 0  lang  of 0  one  system prompt
-0.076  #before #duty  #every #then  #no #not give  #not give  #say #thing  / bin  a .. assistant  import  the .. within  行
-0.075  #returns #use  0 .. with  0 :  forget  or .. the  take  the bot
-0.074  #consent #not give  #consent #take  ^ instruction  asks  latest  linux  prompt injection  件
-0.073  #before  #secret #silent  #trigger  / img  / x0  ^ budget  ^ ne  communiquez  example .. x0  ignore the  it .. for  ne communiquez  newsletter  rotate  token .. token  votre
-0.072  like  please .. 0  secret  todo :  user :
-0.071  #before #thing  #no #take  #obey #telling rules  / etc  ^ track  an .. the  be .. to  between  can .. be  die .. von  etc  etc /  example .. 0  not .. a  sure .. the  the .. need  to all
-0.07  #give #no  #quoted #telling ignore  =  ^ curl  a txt  anterior  bitte .. sie  do .. to  e .. x0  read the  talk  the .. may  unit  written
-0.069  #before #quoted  #discredit  #personal #use  / head  / user  = 0  ^ example  ^ hi  ^ x0  a user  class  follow the  it's  org .. 0  second  the .. instruction  this .. you  to .. as  white .. a
-0.068  #talk #telling rules  ]  ^ system  ha .. el  how .. you  log in  mir  order  replace  send .. the  the .. after  the invoice
-0.067  " system  " x0  #about #telling prompt  #forced #use  #office #open  #take #you  @ x0  ^ date  and .. a  has approv  iban  kind :  recommend  setting  to .. it  took  you .. now
-0.066  0 .. admin  [ ]  and forward  and to  group  has .. request  inform  is .. on  personal
-0.065  #no #whole  #obey #telling prior  fail  messag  x0 >
-0.064  #before #obey  ^ apiversion  ^ kind  apiversion  apiversion :  don't .. the  rule  test  told
-0.063  #excuse  #no #personal  #talk #telling ignore  #talk #telling prompt  0 .. 0  are a  id  show  the key  un  user .. approv
-0.062  #returns #take  #self #talk  a .. to  danach  it .. it  it .. that  leiten  leiten sie  löschen  löschen sie  note .. 0  o /  sie .. die
-0.061  all .. from  def test  dist  http .. github  if a  must .. to  password :  prompt .. the  redact  you .. your
-0.06  " assistant  #before #identifier  #no #not harm  #not harm  #talk #thing  a .. a  and 0  at once  eggs  expir  had  org /  the docs  you must
-0.059  #office #whole  #param #user  #take #telling prior  ' =  0 ]  0 x0  = http  a .. in  break  do .. this  down  invalid  letter .. the  one .. the  the .. confirm  x0 from
-0.058  #discredit #trigger  #talk #trigger  ^ const  ^ инструкция  grep  jamai  the .. name  инструкция
-0.057  #before #consent  allow  attack  call .. first  for  office  rs  »
-0.056  #discredit #harm  : bitte  >  @ localhost  agent .. a  dolor  horn  in .. are  must  src  user .. localhost  人
-0.055  #care #no  0 .. are  ^ how  and .. of  between .. and  number .. 0  should  tell .. what  to .. or  ya ha
-0.054  #about #telling file  #no #their  #no #user  #obey #self  #telling reset #thing  ^ please  before .. commit  creat  ignoriere  ignoriere .. anweisungen  the .. have  the password  was
-0.053  #no #others  : send  as .. i  assistant .. it  attacker  env example  file :  key  never  since  to .. on  👩
-0.052  #every #obey  #thing #you  ^ si  cli  do  logs  section  token .. 0  } ]
-0.051  #give #harm  #office #say  #returns #secret  #secret #telling prior  ^ upgrade  ^ use  also  developer  everyth  example "  fall  for .. in  indirect  jwt  jwt .. x0  m  please don't  postgr .. localhost  public key  text .. the  the .. form  the previou  |  提  👨
-0.05  #telling prior  add  am  in .. page  instruction  on .. 0  or .. to  sh  start  the .. asked  the .. ignore
-0.049  #about #consent  #about #you  #office #returns  #take #telling reset  / ?  0 |  : how  ^ c  and .. by  instruccion  las instruccion  password "  permission  stop  von  ह
-0.048  " http  #discredit #please  / www  ^ ghcr  ^ name  don't  ghcr  ghcr .. x0  ghcr io  head  parti  pg  the  to .. call  version  www
-0.047  #model #their  / src  ^ $  ^ api  ^ tool  eva  http .. org  in .. the  integrity  integrity .. x0  login .. example  metric  often  project  the model  tool .. and  track  you need
-0.046  #forced #user  #model #you  ' you  call the  forward the  h  imag  image .. x0  ops  tell .. the  you asked
-0.045  #about #obey  #identifier #trigger  an .. to  between .. 0  between 0  send .. mail  to .. before  to .. prompt
-0.044  #about #form  #rank  #self #take  ] }  ^ راهنمای  are .. assistant  chair  if .. you  manager  what'  راهنمای
-0.043  #before #personal  #please #telling prior  0 .. to  a .. page  app  asks for  customer  dear customer  e .. 0  end certificate  gmbh  help  if the  look .. the  right  svg  the .. told  token "  well  | |
-0.042  #form #say  #silent #take  #telling prior #telling prompt  / p  : thank  = <  ^ http  blog  by .. of  ha  hello world  host  me  product  sie die  t :  updat  us  w /  your .. key
-0.041  #obey #telling reset  #please  #telling rules #thing  ' or  0 [  and tell  cve  docker  don't tell  e g  prompt .. a  remov  the .. is  third parti  through the  und .. sie  your password
-0.04  #not give #trigger  / docs  ^ مرحبا  a .. message  anyth  chatbot  disregard .. and  how to  over  please .. it  report  the .. e  url =  white  white text  «  مرحبا
-0.039  #forced #you  <  a .. it  ada  by friday  de passe  gateway  is not  mot  mot .. passe  mot de  support  you are  } }
-0.038  #before #then  #every #use  #telling prior #you  : password  ] {  cent  double  for .. so  statu  token  token .. in
-0.037  #before #open  #harm #please  ^ rotate  docs /  http .. x0  invoic  keep  lang =  must be  search
-0.036  #about #personal  #before #telling ignore  #every #whole  #quoted #take  #secret #telling file  0 .. token  @ corp  ^ do  a web  build  copy  if .. is  your api
-0.035  " 0  #duty #then  #forced #thing  / login  0 .. e  ^ begin  a .. tell  contractor  curl .. http  cve .. 0  cve 0  diff  example :  known  pin  the .. user
-0.034  #care #not give  #consent #you  ^ import  ^ jwt  before you  markdown  remove  sum  these  transfer .. 0
-0.033  #about #use  #every #lasting  #excuse #telling ignore  #not give #personal  #office #talk  / png  ^ docker  api .. http  bitte  chat  class =  image /  key .. the  switch  the .. should  the second  you .. to
-0.032  #discredit #no  #form #telling reset  #talk #you  #telling prior #whole  [ {  ^ she  in .. a  is .. you  otherwise  ssh .. x0  subject :  such as  system .. you  tar
-0.031  #not give #please  #take #telling prompt  ^ src  a tool  fingerprint .. x0  forward .. mail  img /  mail .. example  object  password .. password  recipe  the .. previou  told .. to  म
-0.03  #give #obey  #model #telling reset  #not give #telling prior  ^ test  can i  check  disregard  hidden  in this  not .. in  token =
-0.029  #every #self  #please #you  / app  : http  a .. as  all the  cv  have to  localhost :  summary  was .. 0  در
-0.028  #ask #open  #every #telling ignore  #form #telling prior  #personal #quoted  / github  ^ public  asked for  assistant .. is  lunch  md  old  you've
-0.027  #about #secret  #before #trigger  #divert #form  #excuse #telling harm  #their #use  / localhost  ^ send  ^ subject  a .. with  agent .. the  git  key .. api  kind  through  with an  you .. for
-0.026  '  0 .. password  > <  begin certificate  data .. x0  migration  tell .. to  to .. team  {
-0.025  #every #you  #talk #user  #thing  connection  in a  log  please .. and  reset  screenshot  self  sentence  ts  window  you
-0.024  #give #you  #identifier #telling file  #personal #telling ignore  #telling ignore #thing  #telling prior #telling reset  ^ if  ^ set  ^ text  article  ones  please .. my  restart  the contract  train  with your
-0.023  #duty #telling ignore  #harm  #identifier #secret  0 .. eur  ^ a  ^ as  begin public  end public  key =  order .. 0  r  select  x0 .. and
-0.022  #not give #secret  #take #telling ignore  / test  ^ select  config  in x0  instruction .. the  instruction in  question  src /  table
-0.021  #form #self  #not say #silent  0 .. x0  explain  keys  out of  said  the .. has  we .. a
-0.02  #quoted  0 .. it  begin  com .. x0  con  function  laptop  node .. 0  pass  within
-0.019  #care #secret  #every #telling reset  0 .. g  eur  id .. 0  id |  need  none  shall  third  until  usage
-0.018  #please #say  bad  fund  python  rate  replac  the .. customer  und  you .. an
-0.017  ' 0  @  ^ fix  after the  anyone  docs :  mail to  side  the .. said  the old  your .. by  👩 💻  💻
-0.016  #about  #about #their  #excuse #thing  #say #telling rules  : '  : 0  never .. the  password  tag  user
-0.015  #give #telling ignore  #give #whole  #no #telling ignore  ^ answer  ^ in  can .. the  git .. 0  kernel  kernel .. 0  les  process  text /  the .. be  the .. token  x0 .. 0
-0.014  #consent #office  #model #telling prior  #talk #telling prior  ^ |  id x0  password .. the  token :  x0 .. http
-0.013  #every #telling prompt  ai  for .. 0
-0.012  #give #user  #harm #you  #self  and a  api .. api  at .. 0  call .. the  for .. password  ms  the repository  x0 x0
-0.011  #forced  #give #telling models  #returns #user  #take #talk  *  the .. restart  to read  }
-0.01  " to  #give #personal  0 with  and .. your  by  file  font  forward .. to  ignore .. instruction  person  run `  short  what is  your .. here
-0.009  #every #model  #form #identifier  #no #not take  #no #telling rules  #not take  api .. com  code .. the  content  data :  pric  readme  the .. which  want to
-0.008  #about #no  #about #self  #excuse #give  #forced #no  : [  = your  it as  session  the .. the  up to  x0 .. x0
-0.007  first .. the  hand  page  thank you  the .. for  the .. your  treat
-0.006  #take #thing  $ {  ^ assistant  and .. is  assistant .. the  at  has .. the  helpful  the .. system
-0.005  #consent #then  #model #say  and .. one  reject  were .. to
-0.004  #about #telling prior  #duty #you  #form #give  #model #office  #obey #quoted  #silent #you  and .. in  ci  install  key .. key  rsa  serial  the .. a
-0.003  #consent #trigger  #excuse #user  #obey #take  #whole  ^ id  be .. in  error :  it was  link
-0.002  #address #harm  #not give #you  ^ error  ^ read  g  json  name  of .. is  on .. a  x0 0
-0.001  #identifier #use  city  commit x0  on the  two
0.001  #give #telling prior  : i  authentication  bin  into  is .. x0
0.002  #duty #give  #office  #quoted #you  #secret #user  auth .. 0  die .. die  is .. the  on a  work .. the  не
0.003  ^ open  leav  order 0  tom  with a
0.004  #every #telling rules  #no #talk  auth  bob  click  hello  to see  we .. to  you .. before
0.005  #say #telling prior  case  the number  the summary
0.006  ^ env  user .. the  x0 "
0.007  #give #telling prompt  #no #trigger  0 .. in  assistant  she  the .. been  the .. by  the .. when
0.008  #duty #telling rules  #form #no  #model #quoted  < p  above  cookie  p >  please  re  the .. that  will
0.009  #identifier #telling prior  #office #please  #telling file #telling ignore  address  api  confirmation  in .. to  x0 .. from
0.01  could  database  fix  from 0  left  on .. to
0.011  #consent #secret  #excuse #quoted  #silent #trigger  #take #trigger  and .. its  as  four
0.012  #give #quoted  #telling ignore  #telling new #telling prior  #then #whole  http  your
0.013  #address #no  #take #use  ^ forget  for the  it .. the  it .. with  pull
0.014  #consent #telling unasked  #divert #harm  #personal #then  #trigger #you  0 .. a  : in  all .. the  have .. to  noth  out .. the  shop  the .. all  the .. on  with it
0.015  #before #give  #give #then  #give #thing  #others #use  #telling prior #thing  : it  and the  from  is  it .. of  to .. 0
0.016  " statu  #personal #user  and .. you  collect  statu "  way  with .. of
0.017  #form #quoted  #telling models #you  os  registry  system :  the .. can  the user  up the  want .. to  work
0.018  #every #user  a .. which  and .. are  e mail  evil example  mode  part  you do
0.019  #duty #form  #excuse #then  #give #use  a .. 0  a .. and  en  login '  message
0.02  " and  #consent #say  #telling models #telling rules  0 .. from  hotel
0.021  # 0  #every #thing  #excuse #secret  #identifier  #obey #thing  0 days  number of  skip  x0 .. the
0.022  " "  #harm #identifier  #please #trigger  offer  the .. open  to 0  to continue  who  your .. the  ~
0.023  #consent #harm  #divert #personal  #form #personal  #identifier #telling marker  #returns  #telling ignore #you  #then  default  is .. a  payment  user /
0.024  #address #say  #harm #telling harm  #obey #you  #telling role #telling rules  ^ security  ^ user  below  rest
0.025  #excuse #you  #secret #telling ignore  #telling keep #user  #you  i'm  of .. and  see  ~ /
0.026  and .. them  are .. and  from .. to  start .. 0  the .. must
0.027  #duty #not give  #personal #secret  #talk #use  #telling file  #telling later #user  #their #user  hint  it by  release
0.028  #before #self  #consent #thing  #duty #model  #office #telling role  #then #trigger  ^ don't  are .. you  i .. to  now  result :
0.029  #model #telling ignore
0.03  #about #before  #address #please  #duty #telling prior  #please #talk  answer  board  has been  key .. x0  term  to the  user .. 0
0.031  #about #give  #divert #thing  #duty #returns  #model #open  #telling harm #telling prior  #telling marker #telling prompt  backup  db password  machine  set  you .. the
0.032  #address #obey  #address #office  #duty #identifier  #no #telling role  #telling others  0 .. and  every  helper  o  pull request  to
0.033  #harm #office  #quoted #thing  five  of  only  part .. the  with .. 0
0.034  #address #silent  #excuse #personal  #form #you  #no #telling keep  #say #silent  #self #telling ignore  #take #their  ahead  offer .. 0  that  them
0.035  #before #form  #consent #duty  #consent #self  #every  ^ install  as .. and  faster  free  ghp  level  private  this .. it
0.036  !  #personal  0 .. on  :  ^ result  an .. a  c  not .. the  want
0.037  #about #identifier  #identifier #quoted  #quoted #secret  #secret #self  dear  invoice 0  memory  scan  the .. only  you .. that
0.038  #before #no  #duty #others  #every #harm  #give #silent  #telling reset #telling rules  /  / home  0 .. info  0 .. the  ^ file  book  erp  euro  für  matter  other  the .. request  write  you .. asked
0.039  #address #their  #personal #thing  #quoted #use  : for  ^ *  ^ return  e  is .. and  it .. be  true
0.04  #give #take  #open  #quoted #user  #secret #you  0 .. out  0 0  comment .. the  dinner  have  id "  main  screen  the last  und .. die
0.041  #consent #telling rules  #duty  #office #telling models  #self #telling role  / a  : $  end  form  from .. on  is to  that it  the .. was  to .. in  within .. days
0.042  #about #divert  #duty #harm  #silent #user  #telling prior #use  #use #whole  ai that  das  days  enabl  move .. the  push  too  user'
0.043  #form #please  #no #office  #telling prompt  ' and  : :  call  content of  el .. de  env  please .. attach  please find  production  total .. 0
0.044  #not say #user  #rank #say  #self #telling prior  #telling ignore #telling reset  are .. for  chang  de .. la  ok .. x0  share the  the .. link
0.045  #address #trigger  #consent #identifier  #form #their  #obey #office  #telling harm  0 and  ^ tell  after  example  has  prod  reader  the .. of  with .. and  your .. to
0.046  #every #no  #every #office  #thing #trigger  0 $  and .. to  discount  http .. net  repeat  two .. of  were asked  when
0.047  #before #you  #office #trigger  0 '  ^ after  ^ customer  ^ description  and do  coding agent  repository  role =  the admin  the follow  then  word
0.048  #address #duty  #give #talk  #model #user  #no #not say  #not say  click here  do .. the  p  to .. this
0.049  #address #secret  #before #telling rules  #model #no  #telling harm #telling rules  / 0  a .. from  access  assistant :  away  client  des  does  example org  have .. it  into the  number .. the  please .. the  s  send .. password  the user'
0.05  #self #telling unasked  #telling prior #telling role  #telling reset #you  #telling rules #telling unasked  #then #use  encod  is .. in  my .. the  of this  thursday
0.051  #duty #personal  #duty #telling models  #give #telling new  #lasting  #others #then  #please #take  #self #telling prompt  : when  ] :  been  get the  login .. password  of the  present  the .. database  total
0.052  #model #others  #no #telling models  #office #quoted  #others #take  coding  export  the .. from  trust  u  with  x0 '
0.053  " id  #before #secret  #every #excuse  #give #returns  ' x0  / id  and .. it  and .. no  de la  for .. a  left out  sync  task  the .. list
0.054  #discredit #telling ignore  #form #user  #office #personal  0 .. name  connect  example .. png  here  info  sh `  trouble  within 0
0.055  #address #form  #discredit #office  #form #returns  #harm #model  #harm #secret  #no #say  any  application  in .. for  internet  of .. for  plan  png  policy .. 0  site
0.056  #forced #quoted  #telling harm #telling ignore  #telling prior #telling title  #telling unasked  administrator  at ten  in .. name  lumenwork  request .. the  store  thank
0.057  #consent #form  #give #self  #no #you  ^ with  a .. on  a .. this  are 0  durch  e .. a  get  with .. right  x0 .. start
0.058  #excuse #their  #model #silent  #telling ignore #telling models  #telling ignore #user  contact  it  print  setup  sort  view  went
0.059  #consent #model  #consent #quoted  #discredit #you  #open #trigger  #telling new #you  $ 0  < /  example /  full  in .. even  meet  option  up  user .. it  x
0.06  #give #model  #identifier #obey  #rank #use  / i  ^ dear  api .. in  attach  have a  open  system .. now  that .. was  to .. address
0.061  #about #user  #address #telling file  #harm #telling ignore  #param #quoted  same  tax  the .. me  the line
0.062  #no #silent  #obey #use  = '  ^ kindly  for .. this  invoice .. 0  kindly  so .. can  star  this .. to  time  tunnel
0.063  #  #secret #telling rules  #telling prompt #you  ^ total  and  are .. with  cat  cat ~  de  display  each .. a  http .. test  job  move  of .. of  this is  tool  transfer
0.064  #excuse #take  #no #telling harm  #quoted #self  administrator has  deletion  ignore all  maintenance mode  the .. new  to finish  | sort
0.065  #address #self  #give #please  an die  been .. with  call .. to  debug  den .. der  detail .. the  door  each time  ki  mark .. as  the .. want  à  à .. les
0.066  #telling ignore #telling prior  ah  language model  open at
0.067  #every #silent  #give #telling file  #office #telling marker  #please #thing  #telling marker #telling prior  0 .. run  [ /  decode  does not  env .. to  in .. in  list .. the  style =  that .. are  the .. payment  today
0.068  #give #identifier  #office #use  #telling prior #then  0 .. be  ^ access  beim  business  go .. the  name "  t .. t  the owner  the ticket  to .. with
0.069  " :  #harm #trigger  #no #telling unasked  #office #thing  #telling new #thing  and .. from  consent  for .. with  for .. x0  is .. it  les .. la  x0 .. q
0.07  #give #telling role  #harm #obey  #no #then  #obey #say  #please #whole  #say #trigger  are .. by  great  is .. so  is out  out  question :  review  t =  ticket .. 0  to .. of  your next
0.071  #every #telling agreed  #model #telling later  ^ could  and add  and print  operator  yes
0.072  #address #telling rules  #address #then  #before #telling file  #every #telling prior  #quoted #trigger  #say #secret  #telling ignore #telling prompt  / r  of .. the  su  support .. example  the .. agent  the question
0.073  #please #telling models  #say #take  0 in  contributor  environment  for automat  museum  the .. page  the rest  tmp  to .. help  total 0
0.074  #consent #telling models  #give #their  #personal #their  #telling keep  #telling new  0 .. per  and post  as .. as  get it  on  read this  secret |  the .. do  their  your .. in
0.075  ! =  #others  #rank #self  #telling reset  #thing #use  : you  admin '  line  of .. tool  the .. account  the .. line  to http
0.076  #consent #excuse  #secret #thing  all .. instruction  eine  hinwei für  toda las  und .. an  vom  x0 x  zugang  для  об  об этом  этом
0.077  #address #take  #please #user  ^ à  archive  card .. 0  count  llm  root .. 0  x0 .. auth
0.078  #address #quoted  #every #say  #harm #quoted  #personal #say  and run  available  end .. private  end openssh  execute  im  safety  the link
0.079  #form #harm  #model #please  #take #telling role  ^ maintainer  day  drop  is .. to  mail example  name .. price  net /  page 0  png ?  previou instruction  proce  user .. to
0.08  #quoted #then  #then #thing  role .. admin  style .. 0  ticket  will .. the  こ
0.081  $ x0  grow  http .. example  six  the .. this  the operator  x0 |
0.082  #consent #personal  #harm #no  #office #telling title  #office #you  0 from  : your  im .. und  not .. any  policy  postfach  receiv  response  the .. to  transcript
0.083  #divert  #divert #give  #give #say  * /  0 .. request  ^ ticket  asked to  thank !  the way  w
0.084  #secret #use  ^ 0  ` curl  is .. that  msg  pdf .. x0  son  the .. two  { "
0.085  #lasting #say  #telling quiet  ^ see  begin .. private  ines  isn't  lo .. el  place  this .. is
0.086  #model #telling quiet  #others #telling prior  asistente  dear .. please  gets  login  repeat the  responde
0.087  #not say #open  avec  by .. the  maintenance  php  private key  software  test /  the calendar  them .. a  x0
0.088  #consent #open  #divert #model  #telling prompt #telling rules  ^ [  begin openssh  offer 0  price
0.089  " name  #personal #take  #say #you  > you  due  the .. isn't  x0 $
0.09  #excuse #identifier  #please #telling rules  #user  a comment  and .. out  on this  post  so .. the  the .. policy  this .. from  to you
0.091  #consent #every  = {  left .. the  remark  toda  your .. a
0.092  #consent #telling prior  #identifier #then  #no #open  #telling agreed #thing  as .. the  for this  invoice  login .. x0  lumenwork /  not .. about  supervisor  sur .. de
0.093  #harm #take  0 .. la  error 0  reveal .. prompt  when .. this  | x0
0.094  #ask #their  #form #thing  customer .. thank  example net  for .. agent  na  nach  next  para  tell them  the .. password  the .. went
0.095  #consent  #telling models #trigger  #telling role #you  conversation  t  using the
0.096  #address #before  #model #secret  has agre  history  need the  share  statu .. x0  wallet  with .. in  zusammenfassung  на
0.097  #address #every  #harm #thing  #take #user  #telling file #thing  #telling models #telling prior  / *  as .. comment  b  move .. to  number  please .. our  see .. the  stor  user .. for  very
0.098  #use #you  #whole #you  hour  to my  vom 0
0.099  #about #talk  #telling models #user  and .. x0  assistant .. this  den  later  model :  partner  r ?  root .. x0  smaller  them to  | system  и
0.1  #before #model  #harm #user  ' '  @ mail  each  x0 .. com
0.101  #model #telling file  ends  in .. next  owner  the .. in
0.102  #every #telling later  ^ it  a .. is  agent :  firewall  freitag  give  is .. from  metadata  phone  please .. to
0.103  #identifier #office  #obey  ^ {  first  img  the .. 0  the meet  this .. the  txt
0.104  #duty #use  #give #office  #thing #user  evil  state  tr  we can
0.105  #address #thing  #model #use  about it  brought  die .. der  in the  its  reveal  the date
0.106  #model #trigger  ^ token  admin  compte  key :  trop
0.107  #duty #office  and .. the  result  with the  you .. read
0.108  #address #excuse  $
0.109  #please #telling reset  ' :  0 .. of  de .. du  line .. the  step  ve
0.11  #before #say  #form #model  #no #use  0 .. is  automat  de .. a  do so  l  ok
0.111  #say  #telling title  ticket as
0.112  ^ client  desc  it is  maintainer
0.113  notice  q  the .. are  will .. on
0.114  ! x0  #address  #telling rules #whole  ni  open .. 0  x0 .. to
0.115  " ok  #about #excuse  be .. on  in your  the .. you  x0 #
0.116  #address #use  and .. with  on tuesday  top
0.117  #duty #thing  der  is a  openssh  openssh .. key  openssh private
0.118  / l  ^ eine  highlight  reveal the  than
0.119  #address #talk  #office #telling prior  ^ before  grant  if .. admin
0.12  acme  feedback  you were
0.121  #model #obey  sitzung
0.122  a .. de  está  for .. the  up .. the
0.123  ^ hinwei  der .. und  mon  mon .. 0
0.124  base  file .. public  is .. by
0.125  #trigger #user  bank .. in  empty  finish  that the  zur
0.126  #please #self  #telling agreed  la .. du  list  request  that .. this  有
0.127  dns  please .. of  went well
0.128  client .. x0  👍
0.129  #telling marker  accept  as "  entry  guest  the .. about  token .. x0
0.13  #obey #then  0 euro  this  verify  x0 and
0.131  #model #rank  bank  end of  to be
0.132  ^ entry  de .. 0  holiday  io
0.133  #every #identifier  ok "
0.134  qui  upload  x0 =
0.136  #duty #take  #every #take  #user #you  blue  que
0.137  #form #take  my
0.138  #model #then
0.139  #model #take  install with
0.14  #telling role  tell .. it
0.141  #lasting #telling later  lo  requir  à .. de
0.142  x0 t
0.143  agenda  it .. on  pdf  the .. as
0.144  #identifier #model  #their  0 is  ^ for
0.145  the .. well
0.147  #address #personal  #telling prior #user
0.148  #consent #no  #self #whole  ^ <  ^ document  aux  on .. the  term :
0.149  #telling rules  that .. the
0.15  ^ term
0.152  #every #secret  has .. to  the .. at
0.153  #address #user  note
0.154  0 .. days  a .. of  body
0.155  este  make
0.157  #address #give
0.158  digital
0.159  ^ offer  hinwei  patient
0.16  password .. x0  seit
0.161  lo que
0.162  : x0
0.163  comment
0.164  0 mg  mg
0.165  #say #use
0.166  0 "
0.167  #say #then
0.169  agent .. this
0.17  #address #model
0.171  #harm #telling prior
0.173  #model #personal
0.174  so
0.176  #harm #use
0.187  e .. o  o .. e  root
0.193  #model #telling models
0.194  continue
0.197  #give #secret
0.2  #telling prior #telling rules
0.202  confirm
0.203  #identifier #thing
0.204  the .. tool
0.207  ^ ignore  ^ invoice
0.209  net
0.21  #telling later
0.211  ten
0.223  du
0.226  #telling models
0.232  exe
0.233  x0 .. example
0.292  #telling ignore #telling rules
0.318  #model
"""
